// Visits the pages of the service with Chromium, as BROWSER_PLAN says, in English and in Spanish. The exit code is the verdict.
import {chromium} from 'playwright-core';
import {Client, listen} from './client.mjs';
import {Report, canFail, inspect, protocol, tabStops, watch} from './probe.mjs';

const plan = JSON.parse(process.env.BROWSER_PLAN);
const report = new Report();
const scopes = 'emails:read emails:write inboxes:read inboxes:write codes:read';

const words = {
  en: {
    locale: 'en-GB', email: 'owner@acme.test', organization: 'Acme', workspaces: 1, role: 'owner',
    add: 'Add a passkey', enter: 'Sign in with a passkey', signIn: 'Sign in', signOut: 'Sign out', signedIn: 'You are signed in',
    local: 'Give access to an app on this computer', remote: 'Give access to', any: 'Any program on this computer can ask like this.',
    name: 'It calls itself “Robot & <b>co</b>” (not verified).', unknown: 'Unknown', verified: 'app.example.com (verified)',
    disconnect: 'Disconnect', more: 'It asks for more than your role allows', used: 'This link is used, over or unknown',
    unknownApp: 'The app is unknown here', badLink: 'This sign-in link does not work', remove: 'Remove', start: 'Connect your MCP client',
  },
  es: {
    locale: 'es-ES', email: 'owner@globex.test', organization: 'Globex', workspaces: 2, role: 'propietario',
    add: 'Añadir una clave de acceso', enter: 'Iniciar sesión con una clave de acceso', signIn: 'Iniciar sesión', signOut: 'Cerrar sesión',
    signedIn: 'Has iniciado sesión', local: 'Dar acceso a una aplicación de este ordenador', remote: 'Dar acceso a',
    any: 'Cualquier programa de este ordenador puede pedirlo así.',
    name: 'Se llama a sí misma «Robot & <b>co</b>» (sin verificar).', unknown: 'Desconocido', verified: 'app.example.com (verificado)',
    disconnect: 'Desconectar', more: 'Pide más de lo que permite tu rol', used: 'Este enlace está usado, caducado o no existe',
    unknownApp: 'La aplicación no se conoce aquí', badLink: 'Este enlace de acceso no funciona', remove: 'Quitar', start: 'Conecta tu cliente MCP',
  },
};

const text = page => page.innerText('main');
const button = (page, name) => page.getByRole('button', {name, exact: true});
const answer = page => new URL(page.url()).searchParams;

// authenticator is a passkey provider inside the browser, with a person who is always there and recognized.
async function authenticator(page) {
  const session = await protocol(page);
  await session.send('WebAuthn.enable');
  await session.send('WebAuthn.addVirtualAuthenticator', {options: {
    protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true,
    automaticPresenceSimulation: true,
  }});
}

async function visit(browser, lang, listening) {
  const w = words[lang];
  const context = await browser.newContext({locale: w.locale});
  context.setDefaultTimeout(20_000);
  const watched = watch(context, [new URL(plan.origin).host, listening.host, 'app.example.com']);
  const page = await context.newPage();
  const look = name => inspect(page, report, {name, lang, pictures: plan.pictures});
  const flow = async (name, steps) => {
    await report.flow(`${name} (${lang})`, steps);
    report.same(`${name} (${lang}): console and requests`, watched.take().join('\n'), '');
  };

  await flow('start page', async () => {
    await page.goto(plan.origin);
    await look('start');
    report.same('start: heading', await page.innerText('h1'), w.start);
    report.is('start: the endpoint', (await text(page)).includes(`${plan.origin}/mcp`));
  });

  await flow('sign in by link, add a passkey, sign in by passkey', async () => {
    await page.goto(`${plan.origin}/sign-in`);
    await authenticator(page);
    await look('sign-in');
    await page.fill('#link', plan.links[w.email][0]);
    await button(page, w.signIn).click();
    await page.waitForURL(`${plan.origin}/sign-in`);
    report.same('signed in: heading', await page.innerText('h1'), w.signedIn);
    report.is('signed in: account', (await text(page)).includes(w.email), await text(page));
    report.is('signed in: organization', (await text(page)).includes(w.organization), await text(page));
    report.same('no passkey yet', await button(page, w.remove).count(), 0);
    await button(page, w.add).click();
    await button(page, w.remove).waitFor();
    await look('signed-in');
    await button(page, w.signOut).click();
    await button(page, w.enter).waitFor();
    report.is('signed out', !(await text(page)).includes(w.email));
    await button(page, w.enter).click();
    await button(page, w.signOut).waitFor();
    report.is('by passkey: the same account', (await text(page)).includes(w.email), await text(page));
  });

  await flow('a link works once', async () => {
    await button(page, w.signOut).click();
    await page.fill('#link', plan.links[w.email][0]);
    await button(page, w.signIn).click();
    await page.getByText(w.used).waitFor();
    watched.refused(400);
    await look('sign-in-refused');
    const gone = await page.goto(plan.links[w.email][0]);
    report.same('a used link: status', gone.status(), 404);
    watched.refused(404);
    report.same('a used link: heading', await page.innerText('h1'), w.badLink);
    await look('bad-link');
    await page.goto(plan.links[w.email][1]);
    report.is('an opened link says whose it is', (await text(page)).includes(w.email), await text(page));
    await look('sign-in-link');
  });

  const robot = await Client.register(plan.origin, 'Robot & <b>co</b>', listening.host);
  await flow('sign in during an authorization, consent, approve', async () => {
    await page.goto(robot.ask(scopes));
    report.same('not signed in: no question yet', await page.locator('[name=answer]').count(), 0);
    await look('sign-in-waiting');
    await button(page, w.enter).click();
    await page.locator('[name=answer]').first().waitFor();
    await look('consent');
    await consent(page, w, listening.host);
    await page.locator('[name="scope.emails:write"]').uncheck();
    await page.locator('[name=answer][value=allow]').click();
    await page.waitForURL(u => u.host === listening.host);
    await approved(page, robot, {without: 'emails:write', withScope: 'inboxes:write', tool: 'emails_update', other: 'inboxes_upsert'});
  });

  await flow('deny, by keyboard alone', async () => {
    await page.goto(robot.ask(scopes));
    const stops = await tabStops(page);
    for (const value of ['allow', 'deny']) {
      report.is(`Tab reaches ${value}`, stops.some(s => s.name === 'answer' && s.value === value), stops);
    }
    for (const name of ['workspace', 'scope.emails:write', 'scope.codes:read']) {
      report.is(`Tab reaches ${name}`, stops.some(s => s.name === name), stops);
    }
    report.is('the focus is seen everywhere', stops.length > 0 && stops.every(s => s.ring), stops);
    const at = n => stops.findIndex(s => s.name === 'answer' && s.value === n);
    report.is('choices come before the answer', stops.findIndex(s => s.name === 'workspace') < at('allow') && at('allow') < at('deny'), stops);
    await page.locator('[name=answer][value=allow]').focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(u => u.host === listening.host);
    const q = answer(page);
    report.same('deny: error', q.get('error'), 'access_denied');
    report.same('deny: iss', q.get('iss'), plan.origin);
    report.same('deny: state', q.get('state'), robot.state);
    report.same('deny: no code', q.get('code'), null);
  });

  await flow('a client with a document of its own', async () => {
    const app = new Client(plan.origin, plan.document, 'https://app.example.com/callback');
    await page.goto(app.ask(scopes));
    await look('consent-verified');
    const shown = await text(page);
    report.same('document: the host comes first', (await page.innerText('h1')).replace(/\s+/g, ' ').trim(), `${w.remote} app.example.com`);
    report.is('document: publisher', shown.includes(w.verified), shown);
    report.is('document: no warning of this computer', !shown.includes(w.any), shown);
    await page.locator('[name=answer][value=allow]').click();
    await page.waitForURL(u => u.host === 'app.example.com');
    await approved(page, app, {withScope: 'emails:write', other: 'emails_update'});
  });

  await flow('connected apps', async () => {
    await page.goto(`${plan.origin}/sign-in`);
    report.same('both are listed', await button(page, w.disconnect).count(), 2);
    await look('connected');
    for (const left of [1, 0]) {
      await button(page, w.disconnect).first().click();
      await page.waitForFunction(n => document.querySelectorAll('form [name=grant]').length === n, left);
    }
    const {status, body} = await robot.refresh(robot.tokens.refresh_token);
    report.same('a disconnected app is refused', `${status} ${body.error}`, '400 invalid_grant');
  });

  await flow('an unknown app', async () => {
    const res = await page.goto(new Client(plan.origin, 'dcr_nobody', 'http://localhost/callback').ask(scopes));
    report.same('unknown app: status', res.status(), 400);
    watched.refused(400);
    report.same('unknown app: heading', await page.innerText('h1'), w.unknownApp);
    await look('unknown-app');
  });
  await context.close();
}

// consent is what a person must be able to read before they answer a program on their own computer.
async function consent(page, w, host) {
  const shown = await text(page);
  report.same('consent: where the answer goes comes first', (await page.innerText('h1')).replace(/\s+/g, ' ').trim(), `${w.local} ${host}`);
  const [size, largest] = await page.evaluate(() => {
    const size = e => parseFloat(getComputedStyle(e).fontSize);
    return [size(document.querySelector('h1 .host')), Math.max(...[...document.querySelectorAll('main *')].map(size))];
  });
  report.same('consent: and is the largest', size, largest);
  report.is('consent: warns of this computer', shown.includes(w.any), shown);
  report.is('consent: the name is text, and marked', shown.includes(w.name), shown);
  report.is('consent: publisher', shown.includes(w.unknown), shown);
  report.is('consent: account', shown.includes(w.email), shown);
  report.is('consent: organization', shown.includes(w.organization), shown);
  report.same('consent: workspaces', await page.locator('[type=radio][name=workspace]').count(), w.workspaces);
  report.is('consent: the role there', (await page.locator('label', {has: page.locator('[name=workspace]')}).first().innerText()).includes(w.role), shown);
  report.same('consent: one is chosen', await page.locator('[name=workspace]:checked').count(), 1);
  report.same('consent: all of them, if there are more', await page.locator('[name=all]').count(), w.workspaces > 1 ? 1 : 0);
  for (const scope of scopes.split(' ')) {
    const box = page.locator(`[name="scope.${scope}"]`);
    const label = await page.locator('label', {has: box}).innerText();
    report.is(`consent: ${scope} in words`, /^\p{Lu}.*\s.*\.$/us.test(label.trim()) && !label.includes(scope), label);
    report.same(`consent: ${scope} is given unless taken out`, await box.isChecked(), true);
    report.same(`consent: ${scope} can be taken out`, await box.isEnabled(), !/^(emails|inboxes):read$/.test(scope));
  }
}

// approved redeems what came back and looks at what it opens.
async function approved(page, client, {without, withScope, tool, other}) {
  const q = answer(page);
  report.same('approved: iss', q.get('iss'), plan.origin);
  report.same('approved: state', q.get('state'), client.state);
  report.same('approved: no error', q.get('error'), null);
  const {status, body} = await client.redeem(q.get('code') ?? '');
  report.same('approved: the code is redeemed', status, 200);
  client.tokens = body;
  const granted = String(body.scope).split(' ');
  report.is(`approved: ${withScope} is granted`, granted.includes(withScope), body.scope);
  if (without) report.is(`approved: ${without} is not`, !granted.includes(without), body.scope);
  const claims = JSON.parse(Buffer.from(String(body.access_token).split('.')[1] ?? '', 'base64url'));
  report.same('approved: the token says the same', claims.scope, body.scope);
  const tools = await client.tools(body.access_token);
  report.is(`approved: opens ${other}`, tools.includes(other), tools);
  if (tool) report.is(`approved: does not open ${tool}`, !tools.includes(tool), tools);
  report.is('approved: for a person', /^user_/.test(claims.sub), claims);
}

// Somebody whose role allows less than is asked for.
async function viewer(browser, listening) {
  const context = await browser.newContext({locale: 'en-GB'});
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const w = words.en;
  const client = await Client.register(plan.origin, '', listening.host);
  await page.goto(client.ask(scopes));
  await page.fill('#link', plan.links['viewer@acme.test'][0]);
  await button(page, w.signIn).click();
  await page.locator('[name=answer]').first().waitFor();
  report.is('viewer: told so', (await text(page)).includes(w.more));
  report.same('viewer: nothing to write', await page.locator('[name="scope.emails:write"]').count(), 0);
  await inspect(page, report, {name: 'consent-viewer', lang: 'en', pictures: plan.pictures});
  await page.locator('[name=answer][value=allow]').click();
  await page.waitForURL(u => u.host === listening.host);
  await approved(page, client, {without: 'emails:write', withScope: 'emails:read', tool: 'emails_update', other: 'emails_list'});
  await context.close();
}

// Somebody who was never here, of an organization whose name is no markup, in a browser without scripts.
async function invited(browser, listening) {
  const [email, [link]] = Object.entries(plan.links).find(([who]) => who.endsWith('@example.com'));
  const context = await browser.newContext({locale: 'es-ES', javaScriptEnabled: false});
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const w = words.es;
  await page.goto(link);
  report.is('invited: the page says whose the link is', (await text(page)).includes(email), await text(page));
  report.same('invited: no passkey without scripts', await page.getByRole('button', {name: w.enter}).count(), 0);
  await button(page, w.signIn).click();
  report.same('invited: signed in', await page.innerText('h1'), w.signedIn);
  const client = await Client.register(plan.origin, 'Robot', listening.host);
  await page.goto(client.ask(scopes));
  report.is('invited: organization', (await text(page)).includes('Peña & Söhne <b>'), await text(page));
  await page.locator('[name=answer][value=allow]').click();
  await page.waitForURL(u => u.host === listening.host);
  await approved(page, client, {withScope: 'emails:write', other: 'emails_update'});
  await context.close();
}

const browser = await chromium.launch({
  executablePath: plan.chromium,
  env: {...process.env, ...Object.fromEntries((plan.env ?? []).map(pair => pair.split(/=(.*)/s)))},
  // Names lead nowhere but to the service, the client and the stand-in for its publisher. Its key is known; ignoring errors of
  // certificates altogether would switch passkeys off.
  args: [`--ignore-certificate-errors-spki-list=${plan.publisherKey}`, `--host-resolver-rules=MAP app.example.com:443 ${plan.publisher}, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1`],
});
const listening = await listen();
try {
  console.log(`Chromium ${browser.version()}`);
  await report.flow('the checks themselves can fail', () => canFail(browser, report, plan.origin));
  for (const lang of ['en', 'es']) await visit(browser, lang, listening);
  await report.flow('a viewer is asked for less', () => viewer(browser, listening));
  await report.flow('an invitation, without scripts', () => invited(browser, listening));
} finally {
  await browser.close();
  listening.close();
}
console.log(`${report.pages.size} pages in two colour schemes and two widths; pictures are in ${plan.pictures}`);
console.log(`${report.good} passed, ${report.bad} failed`);
process.exitCode = report.bad > 0 || report.good === 0 ? 1 : 0;
