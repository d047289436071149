// A client's life with an authorization server, step by step: whoever runs this (../oauth.go) writes one command a line to
// standard input and reads one reply a line. The client's own provider does all of OAuth; only the browser is elsewhere: the
// address that a client wants opened is a reply, and what came back from there is the next command.
import { createInterface } from "node:readline";

// Keeper is the storage of an OAuthClientProvider, as an application would write it.
export class Keeper {
  #stored = {};
  #config;
  constructor(config) {
    this.#config = config;
    if (config.cimd) this.clientMetadataUrl = config.cimd;
  }
  get redirectUrl() {
    return this.#config.callback;
  }
  get clientMetadata() {
    return {
      client_name: this.#config.name,
      redirect_uris: [this.#config.callback],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      ...(this.#config.scope ? { scope: this.#config.scope } : {}),
    };
  }
  state = () => (this.#stored.state = crypto.randomUUID());
  clientInformation = () => this.#stored.client;
  saveClientInformation = (v) => void (this.#stored.client = v);
  tokens = () => this.#stored.tokens;
  saveTokens = (v) => void (this.#stored.tokens = v);
  codeVerifier = () => this.#stored.verifier;
  saveCodeVerifier = (v) => void (this.#stored.verifier = v);
  discoveryState = () => this.#stored.discovery;
  saveDiscoveryState = (v) => void (this.#stored.discovery = v);
  redirectToAuthorization = (url) => void (this.#stored.open = String(url));
  invalidateCredentials = (what) => {
    if (what === "all" || what === "client") delete this.#stored.client;
    if (what === "all" || what === "tokens") delete this.#stored.tokens;
    if (what === "all" || what === "verifier") delete this.#stored.verifier;
    if (what === "all" || what === "discovery") delete this.#stored.discovery;
  };
  // opened is the address that was to be opened since the last time.
  opened() {
    const url = this.#stored.open;
    delete this.#stored.open;
    return url;
  }
  // returned is what came back, with the state checked, as an application must.
  returned(callback) {
    const q = new URL(callback).searchParams;
    if (q.get("state") !== this.#stored.state) throw new Error("another state");
    return q;
  }
}

// live serves commands. act maps a command's name to a function of its argument.
export async function live(provider, act) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { command, argument } = JSON.parse(line);
    const reply = {};
    try {
      reply.result = (await { forget: () => provider.invalidateCredentials("tokens"), ...act }[command](argument)) ?? null;
    } catch (e) {
      reply.error = `${e?.constructor?.name}: ${e?.code ?? ""} ${e?.message ?? e}`;
    }
    const open = provider.opened?.();
    if (open) reply.open = open;
    const tokens = provider.tokens?.();
    if (tokens) Object.assign(reply, { access: tokens.access_token, refresh: tokens.refresh_token, scope: tokens.scope });
    const client = provider.clientInformation?.();
    if (client) reply.client = client.client_id;
    console.log(JSON.stringify(reply));
  }
}

export const config = JSON.parse(process.env.MCP_OAUTH);
