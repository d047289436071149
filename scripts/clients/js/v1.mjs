// The first line of the TypeScript SDK: it knows initialize alone.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { answer, plan, report, talk } from "./conversation.mjs";

const client = new Client({ name: "buzon-check-v1", version: "1.0.0" }, { capabilities: { elicitation: { form: {} } } });
const person = { action: "cancel", asked: 0 };
client.setRequestHandler(ElicitRequestSchema, (request) => {
  person.asked++;
  return answer(request.params, person.action);
});
const headers = plan.token ? { Authorization: `Bearer ${plan.token}` } : {};
const transport = new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers } });
await client.connect(transport);
const steps = await talk(client, person, false);
report("legacy", transport.protocolVersion, steps);
await client.close();
