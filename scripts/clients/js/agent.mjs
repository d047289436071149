// An agent without a model works a day: every step that an agent of an inbox takes, asserted. What it can't do itself (mail from
// outside, a crash of the service, a person at a browser) it asks of the program that started it, one JSON line each way: see
// ../../agent. Its tools are those of the official client; only the tasks extension, which that client does not speak, is spoken
// by hand.
import { strict as assert } from "node:assert";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const world = JSON.parse(process.env.AGENT_WORLD);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (want, more = {}) => {
  console.log(JSON.stringify({ want, ...more }));
  const { value } = await lines.next();
  const reply = JSON.parse(value);
  assert(!reply.error, `${want}: ${reply.error}`);
  return reply;
};
const done = (step) => console.log(JSON.stringify({ step }));
const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));

const name = "buzon-day-agent";
const version = "2026-07-28";
const person = { answer: "decline", asked: 0, question: "" };
const client = new Client(
  { name, version: "1.0.0" },
  { versionNegotiation: { mode: { pin: version } }, capabilities: { elicitation: { form: {} } } },
);
client.setRequestHandler("elicitation/create", (request) => {
  person.asked++;
  person.question = request.params.message;
  return person.answer === "accept" ? { action: "accept", content: { confirm: true } } : { action: person.answer };
});
await client.connect(new StreamableHTTPClientTransport(new URL(world.url), { authProvider: { token: async () => world.token } }));
assert.equal(client.getProtocolEra(), "modern");
assert.equal(client.getNegotiatedProtocolVersion(), version);

const text = (result) => result.content.map((c) => c.text ?? "").join("\n");
// call is a call that must succeed, with a question to the person or without.
async function call(tool, args = {}, answer) {
  person.asked = 0;
  person.answer = answer ?? "decline";
  const result = await client.callTool({ name: tool, arguments: args });
  assert(!result.isError, `${tool}: ${text(result)}`);
  assert.equal(person.asked, answer ? 1 : 0, `${tool}: times the person was asked (${person.question})`);
  return JSON.parse(text(result));
}
// until asks again, with a bound, until what it got is enough.
async function until(what, enough, look) {
  for (const end = Date.now() + 30_000; ; await pause(250)) {
    const got = await look();
    if (enough(got)) return got;
    assert(Date.now() < end, `${what}: ${JSON.stringify(got).slice(0, 600)}`);
  }
}
// all reads every page.
async function all(tool, args) {
  const rows = [];
  for (let cursor; ; ) {
    const page = await call(tool, { ...args, limit: 100, ...(cursor ? { cursor } : {}) });
    rows.push(...page.data);
    cursor = page.meta.next_cursor;
    if (!cursor) return rows;
  }
}
const told = async (wish = {}) => (await fetch(world.control, { method: "POST", body: JSON.stringify(wish) })).json();
let keys = 0;
const key = () => `day-${process.pid}-${++keys}`;
const subject = (email) => email.untrusted.subject;

// Morning: who am I, and a desk of its own.
const me = await call("session_get");
assert.equal(me.data.role, "owner");
const inbox = (await call("inboxes_upsert", { slug: "dia", display_name: "El día" })).data;
done(`session_get: ${me.data.role}; inbox ${inbox.address}`);

// Rules and a template, tried before they are let loose.
const rule = {
  inbox: "dia", match: "all", conditions: [{ field: "subject", op: "contains", value: "Factura" }],
  actions: [{ type: "add_label", value: "factura" }, { type: "category", value: "finance" }],
};
const trial = { inbox: "dia", from: "cobros@papel.example", to: inbox.address, subject: "Factura 7" };
const tried = await call("rules_test", { sample: trial, rule });
assert.deepEqual(tried.data.labels, ["factura"]);
const missed = await call("rules_test", { sample: { ...trial, subject: "Hola" }, rule });
assert.deepEqual([missed.data.labels, missed.data.rules[0].matched], [[], false]);
await call("rules_upsert", { slug: "facturas", ...rule, enabled: true });
await call("rules_upsert", {
  slug: "boletines", inbox: "dia", enabled: true, conditions: [{ field: "from", op: "contains", value: "boletin@" }],
  actions: [{ type: "add_label", value: "boletin" }, { type: "handled" }],
});
const quarantine = {
  slug: "estafas", inbox: "dia", enabled: true, conditions: [{ field: "subject", op: "contains", value: "premio" }], actions: [{ type: "quarantine" }],
};
await call("rules_upsert", quarantine, "accept");
assert.match(person.question, /quarantine/i);
await call("extraction_templates_upsert", {
  slug: "factura", decimal: ",",
  json_schema: { type: "object", properties: { number: { type: "string" }, total: { type: "number" } }, required: ["number", "total"] },
  locators: [{ field: "number", kind: "regex", value: "Factura ([0-9]+)", in: "subject" }, { field: "total", kind: "label", value: "Total:" }],
});
done("rules_test, rules_upsert (one asked the person), extraction_templates_upsert");

// A webhook whose secret only the person sees, and hands to the receiver.
const hook = (await call("webhooks_upsert", {
  name: "dia", url: world.hooks, events: ["email.processed", "email.quarantined", "email.handled"], inboxes: ["dia"], idempotency_key: key(),
}, "accept")).data;
assert.match(person.question, /localhost/);
assert(hook.signing_secret.reveal_url && !hook.signing_secret.secret, "the secret stands in the conversation");
const first = (await ask("reveal", { address: hook.signing_secret.reveal_url })).secret;
assert.match(first, /^whsec_/);
await told({ secrets: [first] });
done("webhooks_upsert: the person confirms, and sees the secret on its page");

// 200 mails arrive; the service is killed in the middle of them.
const sent = await ask("mails", { to: inbox.address, first: 0, count: 120 });
await ask("crash");
const more = await ask("mails", { to: inbox.address, first: 120, count: 80 });
assert.equal(sent.sent + more.sent, 200);
const mails = await until("200 mails", (rows) => rows.length === 200 && rows.every((m) => ["processed", "quarantined"].includes(m.status)), async () => [
  ...(await all("emails_list", { inbox: "dia" })),
]);
done("200 mails by SMTP, the service killed (kill -9) after 120 and started again: all are there, none twice");

// Triage: what the rules said of each, and labels for the rest.
const of = (kind) => mails.filter((m) => subject(m).startsWith(kind));
const bills = of("Factura");
assert.equal(bills.length, 80);
assert(bills.every((m) => m.labels.includes("factura") && m.category === "finance" && m.status === "processed"), "a bill without its label");
assert(of("Boletín").length === 50 && of("Boletín").every((m) => m.labels.includes("boletin") && m.handled), "a newsletter");
assert(of("Un premio").length === 20 && of("Un premio").every((m) => m.status === "quarantined"), "a scam");
const questions = of("Pregunta");
assert.equal(questions.length, 50);
for (const m of questions.slice(0, 5)) {
  const changed = (await call("emails_update", { id: m.id, add_labels: ["pregunta"] })).data;
  assert(changed.labels.includes("pregunta"));
}
assert.equal((await all("emails_list", { inbox: "dia", label: "pregunta" })).length, 5);
done("triage: 80 bills, 50 newsletters and 20 scams as the rules say, labels by hand");

// Claim work and finish it; what is claimed is nobody else's.
const claim = await call("emails_claim", { inbox: "dia", subject: "Pregunta", limit: 5 });
assert.equal(claim.data.emails.length, 5);
const again = await call("emails_claim", { inbox: "dia", subject: "Pregunta", limit: 5 });
const mine = claim.data.emails.map((m) => m.id);
assert(again.data.emails.every((m) => !mine.includes(m.id)), "the same mail was leased twice");
for (const id of mine) {
  const finished = (await call("emails_update", { id, handled: true, lease_id: claim.data.lease_id })).data;
  assert.equal(finished.handled, true);
}
const lost = await client.callTool({ name: "emails_update", arguments: { id: again.data.emails[0].id, handled: true, lease_id: claim.data.lease_id } });
assert(lost.isError && /lease_lost/.test(text(lost)), text(lost));
done("emails_claim: 5 finished, none leased twice, another's lease refused");

// Extract, and follow the job to its end.
const job = (await call("extractions_run", { template: "factura", email_ids: bills.slice(0, 50).map((m) => m.id), idempotency_key: key() })).data;
const ended = await until("the job", (j) => !["queued", "running"].includes(j.data.status), () => call("jobs_get", { id: job.job_id, wait_s: 5 }));
assert.equal(ended.data.status, "succeeded", JSON.stringify(ended));
const found = await all("extractions_list", { template: "factura" });
assert.equal(found.length, 50);
for (const x of found) {
  const n = Number(/\d+/.exec(subject(bills.find((m) => m.id === x.email_id)))[0]);
  assert.deepEqual([x.status, x.untrusted.data], ["ok", { number: String(n), total: n + 0.5 }]);
  assert(x.evidence.length >= 2, "a value without evidence");
}
done("extractions_run: a job, followed by jobs_get; 50 with the right values and evidence");

// The same as a task: the request of revision 2026-07-28 with the extension declared.
const rpc = async (method, params, named) => {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientInfo": { name, version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } },
  };
  const headers = {
    Authorization: `Bearer ${world.token}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": named,
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } });
  const reply = await (await fetch(world.url, { method: "POST", headers, body })).json();
  assert(reply.result, JSON.stringify(reply));
  return reply.result;
};
const started = await rpc("tools/call", {
  name: "extractions_run", arguments: { template: "factura", email_ids: bills.slice(50).map((m) => m.id), idempotency_key: key() },
}, "extractions_run");
assert.equal(started.resultType, "task", JSON.stringify(started));
const task = await until("the task", (t) => !["working", "input_required"].includes(t.status), () => rpc("tasks/get", { taskId: started.taskId }, started.taskId));
assert.equal(task.status, "completed", JSON.stringify(task));
assert.equal((await all("extractions_list", { template: "factura" })).length, 80);
done("the same as a task: resultType task, tasks/get until completed");

// One deletion is confirmed, another declined.
const [gone, kept] = bills;
const deleted = await call("emails_delete", { id: gone.id }, "accept");
assert(deleted.data.deleted_at);
person.asked = 0;
person.answer = "decline";
const declined = await client.callTool({ name: "emails_delete", arguments: { id: kept.id } });
assert.equal(person.asked, 1);
assert.match(text(declined), /declined/);
assert.equal((await call("emails_get", { id: kept.id })).data.deleted_at ?? null, null, "declined, and deleted all the same");
assert((await client.callTool({ name: "emails_get", arguments: { id: gone.id } })).isError, "confirmed, and still there");
done("emails_delete: one confirmed and gone, one declined and still there");

// The receiver was told of everything, through the crash.
const [processed, quarantined] = [mails.filter((m) => m.status === "processed"), mails.filter((m) => m.status === "quarantined")];
const heard = (seen, type) => new Set(seen.events.filter((e) => e.type === type && e.answer < 300).map((e) => e.email));
const seen = await until("events", (s) => processed.every((m) => heard(s, "email.processed").has(m.id)) && quarantined.every((m) => heard(s, "email.quarantined").has(m.id)), told);
assert.equal(seen.refused, 0, "a signature did not verify");
const twice = seen.events.length - new Set(seen.events.map((e) => e.delivery)).size;
done(`webhooks: each of 200 events at least once through the crash, ${twice} again, every signature verified by the Standard Webhooks library`);

// A new secret; the old one still signs. Then a delivery fails and is sent again.
const rotated = (await call("webhooks_rotate_secret", { id: hook.id, idempotency_key: key() }, "accept")).data;
const second = (await ask("reveal", { address: rotated.signing_secret.reveal_url })).secret;
assert.match(second, /^whsec_/);
assert.notEqual(second, first);
assert(rotated.previous_valid_until);
await told({ secrets: [first, second], answer: 503 });
await call("emails_update", { id: questions[40].id, handled: true });
const failing = await until("a failed delivery", (s) => s.events.some((e) => e.email === questions[40].id && e.answer === 503), told);
const refused = failing.events.find((e) => e.email === questions[40].id && e.answer === 503);
assert.deepEqual(refused.by, [true, true], "the old and the new secret both sign");
await until("the log of it", (d) => d.data.attempts.some((a) => a.http_status === 503), () => call("webhook_deliveries_get", { id: refused.delivery }));
await told({ answer: 204 });
await call("webhook_deliveries_retry", { id: refused.delivery, idempotency_key: key() }, "accept");
await until("the delivery again", (s) => s.events.some((e) => e.delivery === refused.delivery && e.answer === 204), told);
const delivered = await until("its log", (d) => d.data.status === "succeeded", () => call("webhook_deliveries_get", { id: refused.delivery }));
assert(delivered.data.attempts.length >= 2);
done("webhooks_rotate_secret: both secrets sign; webhook_deliveries_retry: a delivery that failed arrives");

// Wait for a code that is sent meanwhile.
const before = await call("emails_wait", { inbox: "dia", want: "code", timeout_s: 0 });
assert.equal(before.data.timed_out, true);
const waiting = call("emails_wait", { inbox: "dia", want: "code", after: before.data.cursor, timeout_s: 20 });
await pause(300);
await ask("code", { to: inbox.address, code: "552109" });
const came = await waiting;
assert.deepEqual([came.data.timed_out, came.data.untrusted.codes.map((c) => c.value)], [false, ["552109"]]);
done("emails_wait: a code that came while it waited");

// Evening: its own acts, under its own name.
const acts = new Map();
for (const action of ["inboxes_upsert", "rules_upsert", "webhooks_upsert", "extractions_run", "emails_delete", "webhooks_rotate_secret", "webhook_deliveries_retry"]) {
  const rows = await all("audit_events_list", { action });
  const own = rows.filter((e) => (e.untrusted.software ?? "").includes(name));
  assert(own.length > 0 && own.every((e) => e.surface === "mcp" && e.actor.email === "owner@acme.test" && e.request_id), `${action}: ${JSON.stringify(rows.slice(0, 2))}`);
  acts.set(action, own);
}
assert.deepEqual(acts.get("emails_delete").map((e) => e.targets[0]), [gone.id], "the audit has another deletion than the confirmed one");
done(`audit_events_list: ${[...acts.values()].flat().length} acts of its own, with its name; the declined deletion is none`);
await client.close();
console.log(JSON.stringify({ finished: true }));
process.exit(0);
