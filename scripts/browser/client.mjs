// An MCP client as far as authorization goes: it registers, asks, listens on loopback and redeems.
import {createHash, randomBytes} from 'node:crypto';
import {createServer} from 'node:http';

export const json = async (address, init) => {
  const res = await fetch(address, init);
  return {status: res.status, body: await res.json()};
};

const form = fields => ({
  method: 'POST', headers: {'Content-Type': 'application/x-www-form-urlencoded'}, body: new URLSearchParams(fields).toString(),
});

// listen is where a client on the person's computer waits for its answer.
export async function listen() {
  const server = createServer((req, res) => {
    res.setHeader('Content-Type', 'text/html; charset=utf-8');
    res.end('<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Connected</title><p>You can close this page.');
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  return {host: `localhost:${server.address().port}`, close: () => server.close()};
}

export class Client {
  constructor(origin, id, redirect) {
    Object.assign(this, {origin, id, redirect});
  }

  // register makes a public client of a name, registered without a port, as native clients do.
  static async register(origin, name, host) {
    const {status, body} = await json(`${origin}/register`, {
      method: 'POST', headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({client_name: name, redirect_uris: ['http://localhost/callback'], token_endpoint_auth_method: 'none'}),
    });
    if (status !== 201) throw new Error(`registration: ${status} ${JSON.stringify(body)}`);
    return new Client(origin, body.client_id, `http://${host}/callback`);
  }

  // ask is the address that a person has to open; every call has a verifier and a state of its own.
  ask(scope) {
    this.verifier = randomBytes(32).toString('base64url');
    this.state = randomBytes(12).toString('base64') + ' ñ&=';
    return `${this.origin}/authorize?` + new URLSearchParams({
      response_type: 'code', client_id: this.id, redirect_uri: this.redirect, scope, state: this.state,
      resource: `${this.origin}/mcp`, code_challenge_method: 'S256',
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
    });
  }

  redeem(code) {
    return json(`${this.origin}/token`, form({
      grant_type: 'authorization_code', code, client_id: this.id, redirect_uri: this.redirect, code_verifier: this.verifier,
      resource: `${this.origin}/mcp`,
    }));
  }

  refresh(token) {
    return json(`${this.origin}/token`, form({grant_type: 'refresh_token', refresh_token: token, client_id: this.id}));
  }

  // tools are the names of those that a token opens.
  async tools(token) {
    const {status, body} = await json(`${this.origin}/mcp`, {
      method: 'POST', headers: {'Content-Type': 'application/json', Authorization: `Bearer ${token}`},
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    });
    if (status !== 200) throw new Error(`tools/list: ${status} ${JSON.stringify(body)}`);
    return body.result.tools.map(t => t.name);
  }
}
