// The first line of the TypeScript SDK with its own OAuth: see life.mjs.
import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Keeper, config, live } from "./life.mjs";

const provider = config.secret
  ? new ClientCredentialsProvider({ clientId: config.id, clientSecret: config.secret, expectedIssuer: config.issuer })
  : new Keeper(config);
let client, transport;

async function connect() {
  await client?.close();
  transport = new StreamableHTTPClientTransport(new URL(config.url), { authProvider: provider });
  client = new Client({ name: config.name, version: "1.0.0" });
  await client.connect(transport);
  return transport.protocolVersion;
}

await live(provider, {
  connect,
  list: async () => (await client.listTools()).tools.map((t) => t.name),
  call: async (call) => {
    const result = await client.callTool(call);
    return { failed: result.isError ?? false, text: result.content.map((c) => c.text ?? "").join("\n") };
  },
  // This client takes a code and leaves errors to the application.
  finish: async (callback) => {
    const q = provider.returned(callback);
    if (q.get("error")) throw new Error(q.get("error"));
    await transport.finishAuth(q.get("code"));
  },
});
