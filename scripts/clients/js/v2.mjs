// The second line of the TypeScript SDK, which speaks both eras: MCP_MODE auto, pin or legacy.
import { strict as assert } from "node:assert";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { answer, plan, report, talk } from "./conversation.mjs";

const mode = { auto: "auto", legacy: "legacy", pin: { pin: plan.version } }[process.env.MCP_MODE];
assert(mode, "MCP_MODE");
const client = new Client(
  { name: "buzon-check-v2", version: "1.0.0" },
  { versionNegotiation: { mode }, capabilities: { elicitation: { form: {} } } },
);
const person = { action: "cancel", asked: 0 };
client.setRequestHandler("elicitation/create", (request) => {
  person.asked++;
  return answer(request.params, person.action);
});
const auth = plan.token ? { authProvider: { token: async () => plan.token } } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url), auth));

// Without these an auto client that fell back to initialize would look just as well.
const era = client.getProtocolEra();
assert.equal(era, process.env.MCP_MODE === "legacy" ? "legacy" : "modern");
const steps = await talk(client, person, era === "modern");
report(era, client.getNegotiatedProtocolVersion(), steps);
await client.close();
