// A webhook receiver in a process of its own. It verifies each request with the Standard Webhooks library and remembers what it
// was told. Its other port is for the agent: POST / sets {secrets, answer} and returns what was seen.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const told = { events: [], refused: 0, signatures: [] };
let secrets = [];
let answer = 204;

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

function verified(body, headers) {
  return secrets.map((secret) => {
    try {
      new Webhook(secret).verify(body, headers);
      return true;
    } catch {
      return false;
    }
  });
}

const hooks = createServer(async (request, response) => {
  const body = await read(request);
  const by = verified(body, request.headers);
  if (!by.includes(true)) {
    told.refused++;
    response.writeHead(401).end();
    return;
  }
  const event = JSON.parse(body);
  told.events.push({ delivery: request.headers["webhook-id"], type: event.type, email: event.data?.email_id, by, answer });
  response.writeHead(answer).end("noted");
});
const control = createServer(async (request, response) => {
  const wish = JSON.parse((await read(request)) || "{}");
  secrets = wish.secrets ?? secrets;
  answer = wish.answer ?? answer;
  response.end(JSON.stringify(told));
});
const listening = (server) => new Promise((done) => server.listen(0, "localhost", () => done(server.address().port)));
console.log(JSON.stringify({ hooks: await listening(hooks), control: await listening(control) }));
process.stdin.resume().on("end", () => process.exit(0)); // whoever started it is gone
