// The conversation that every client has with a server, whatever the client is called. What to say stands in MCP_PLAN, as
// JSON: see Plan in ../plan.go. A step that is not in the plan is not taken.
import { strict as assert } from "node:assert";

export const plan = JSON.parse(process.env.MCP_PLAN);

// answer fills in a form as a person who agrees with everything would.
export function answer(params, action) {
  if (action !== "accept") return { action };
  const content = {};
  for (const [name, schema] of Object.entries(params.requestedSchema?.properties ?? {})) {
    content[name] = { boolean: true, integer: 1, number: 1, array: [] }[schema.type] ?? schema.enum?.[0] ?? "text";
  }
  return { action, content };
}

const text = (result) => result.content.map((c) => c.text ?? "").join("\n");

// talk takes every step of the plan. person.action is what the user does when asked, person.asked how often that was.
export async function talk(client, person, modern) {
  const steps = [];
  const { tools } = await client.listTools();
  assert(tools.some((t) => t.name === plan.tool.name), `${plan.tool.name} is not listed`);
  steps.push(`list: ${tools.length} tools`);

  const called = await client.callTool(plan.tool);
  assert(!called.isError, text(called));
  assert(called.content.length > 0, "the tool answered nothing");
  steps.push("call");

  for (const step of plan.calls ?? []) {
    const result = await client.callTool({ name: step.name, arguments: step.arguments ?? {} });
    assert.match(text(result), new RegExp(step.expect));
    steps.push(`call ${step.name}`);
  }
  if (plan.resource) {
    const { contents } = await client.readResource({ uri: plan.resource });
    assert(contents.length > 0 && (contents[0].text ?? contents[0].blob), "the resource is empty");
    steps.push("read");
  }
  if (plan.prompt) {
    const { messages } = await client.getPrompt(plan.prompt);
    assert(messages.length > 0, "the prompt is empty");
    steps.push("prompt");
  }
  if (plan.complete) {
    const { completion } = await client.complete({ ref: plan.complete.ref, argument: plan.complete.argument });
    assert(completion.values.includes(plan.complete.expect), `completion: ${completion.values}`);
    steps.push("complete");
  }
  const act = async (step, action, asked) => {
    person.action = action;
    person.asked = 0;
    let said;
    try {
      said = text(await client.callTool({ name: step.name, arguments: step.arguments ?? {} }));
    } catch (e) {
      said = `${e.code}: ${e.message}`;
    }
    assert.match(said, new RegExp(step.expect));
    assert.equal(person.asked, asked, "times the person was asked");
  };
  if (modern && plan.confirm) {
    await act(plan.confirm, "accept", 1);
    steps.push("confirm");
  }
  if (modern && plan.decline) {
    await act(plan.decline, "decline", 1);
    steps.push("decline");
  }
  if (!modern && plan.legacy) {
    await act(plan.legacy, "accept", 0);
    steps.push("refused for want of a question");
  }
  return steps;
}

export function report(era, version, steps) {
  assert.equal(version, plan.version, "negotiated version");
  console.log(JSON.stringify({ era, version, steps }));
}
