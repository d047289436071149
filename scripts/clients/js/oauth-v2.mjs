// The second line of the TypeScript SDK with its own OAuth: see life.mjs.
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Keeper, config, live } from "./life.mjs";

const provider = config.secret
  ? new ClientCredentialsProvider({ clientId: config.id, clientSecret: config.secret, expectedIssuer: config.issuer })
  : new Keeper(config);
let client, transport;

async function connect() {
  await client?.close();
  transport = new StreamableHTTPClientTransport(new URL(config.url), { authProvider: provider });
  client = new Client({ name: config.name, version: "1.0.0" }, { versionNegotiation: { mode: config.mode ?? "auto" } });
  await client.connect(transport);
  return client.getNegotiatedProtocolVersion();
}

await live(provider, {
  connect,
  list: async () => (await client.listTools()).tools.map((t) => t.name),
  call: async (call) => {
    const result = await client.callTool(call);
    return { failed: result.isError ?? false, text: result.content.map((c) => c.text ?? "").join("\n") };
  },
  // The parameters go in whole: this client checks iss too.
  finish: async (callback) => transport.finishAuth(provider.returned(callback)),
});
