// What is asserted of every page, and the book-keeping of checks.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const widths = {wide: 1024, narrow: 320};
const schemes = ['light', 'dark'];

// Report counts checks and prints those that fail.
export class Report {
  good = 0;
  bad = 0;
  pages = new Set();

  is(what, holds, detail = '') {
    if (holds) return void this.good++;
    this.bad++;
    console.log(`FAIL  ${what}${detail === '' ? '' : ': ' + (typeof detail === 'string' ? detail : JSON.stringify(detail))}`);
  }

  same(what, got, want) {
    this.is(what, got === want, `got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }

  // flow runs a part of the visit. What it throws fails it; the others go on.
  async flow(name, steps) {
    const before = this.bad;
    const started = Date.now();
    try {
      await steps();
    } catch (error) {
      this.is(name, false, String(error.stack ?? error).split('\n').slice(0, 8).join('\n      '));
    }
    if (this.bad === before) console.log(`ok    ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  }
}

// watch notes what a page must not do: errors on the console, which violations of the policy are too, errors of scripts, and
// requests to hosts that are none of ours.
export function watch(context, hosts) {
  const faults = [];
  context.on('request', r => {
    const url = new URL(r.url());
    if (url.protocol.startsWith('http') && !hosts.includes(url.host)) faults.push(`request to ${url.host}`);
  });
  context.on('console', m => {
    if (m.type() === 'error' || m.type() === 'warning') faults.push(`console: ${m.text()}`);
  });
  context.on('weberror', e => faults.push(`script: ${e.error()}`));
  return {
    take: () => faults.splice(0),
    // Events arrive later than what caused them.
    has: async match => {
      for (let n = 0; n < 100 && !faults.some(match); n++) await new Promise(done => setTimeout(done, 50));
      return faults.some(match);
    },
    // A page that answers with a status of its own makes Chromium write a line to the console.
    refused: status => {
      const i = faults.findIndex(f => f.includes(`status of ${status} `));
      if (i < 0) throw new Error(`the page was not answered with ${status}: ${faults}`);
      faults.splice(i, 1);
    },
  };
}

// protocol is the page's own DevTools session, one for its life: ending any would take the virtual authenticator away.
const sessions = new WeakMap();
export async function protocol(page) {
  if (!sessions.has(page)) sessions.set(page, await page.context().newCDPSession(page));
  return sessions.get(page);
}

// evaluate runs in the page without being subject to its policy, which allows no eval.
async function evaluate(page, expression) {
  const session = await protocol(page);
  const {result, exceptionDetails} = await session.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
}

// audit is what axe finds: serious and critical violations, what is only minor, and whether it could judge all contrasts.
export async function audit(page) {
  return JSON.parse(await evaluate(page, `${axe};
    axe.run(document).then(r => JSON.stringify({
      grave: r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ' at ' + v.nodes.map(n => n.target.join(' ')).join(', ')),
      minor: r.violations.filter(v => !['serious', 'critical'].includes(v.impact)).map(v => v.id),
      contrast: r.passes.some(p => p.id === 'color-contrast') && !r.incomplete.some(p => p.id === 'color-contrast'),
    }))`));
}

// overflow is how far anything sticks out on the right, in CSS pixels.
export const overflow = page => evaluate(page, `(() => {
  const room = document.documentElement.clientWidth;
  return Math.max(document.documentElement.scrollWidth, ...[...document.body.querySelectorAll('*')].map(e => Math.ceil(e.getBoundingClientRect().right))) - room;
})()`);

// inspect looks at a page in both colour schemes, wide and narrow, and keeps pictures of it.
export async function inspect(page, report, {name, lang, pictures}) {
  const title = `${name} (${lang})`;
  report.pages.add(title);
  report.same(`${title} declares its language`, await page.getAttribute('html', 'lang'), lang);
  for (const [label, width] of Object.entries(widths)) {
    await page.setViewportSize({width, height: 800});
    const out = await overflow(page);
    report.is(`${title} fits ${width} px`, out <= 0, `${out} px stick out`);
    for (const colorScheme of schemes) {
      await page.emulateMedia({colorScheme});
      const found = await audit(page);
      report.is(`${title} ${label} ${colorScheme}: nothing serious for axe`, found.grave.length === 0, found.grave);
      report.is(`${title} ${label} ${colorScheme}: all contrasts judged`, found.contrast);
      if (found.minor.length) console.log(`note  ${title} ${label} ${colorScheme}: ${found.minor}`);
      await page.screenshot({path: join(pictures, `${name}-${lang}-${label}-${colorScheme}.png`), fullPage: true});
    }
  }
  await page.setViewportSize({width: widths.wide, height: 800});
}

// tabStops presses Tab until the focus leaves the page or comes round, and says what had it.
export async function tabStops(page) {
  const stops = [];
  await page.evaluate(() => document.activeElement?.blur());
  for (let n = 0; n < 80; n++) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      return {name: e.name || e.tagName.toLowerCase(), value: e.value ?? '', ring: getComputedStyle(e).outlineStyle !== 'none'};
    });
    if (!stop || stops.some(s => s.name === stop.name && s.value === stop.value)) break;
    stops.push(stop);
  }
  return stops;
}

// canFail proves that the checks above can fail, on pages that deserve it.
export async function canFail(browser, report, origin) {
  const context = await browser.newContext({viewport: {width: widths.narrow, height: 800}});
  const page = await context.newPage();
  const seen = watch(context, [new URL(origin).host]);
  await page.goto(origin);
  report.same('a good page does not stick out', (await overflow(page)) <= 0, true);
  report.same('a good page is clean', seen.take().join(), '');
  await evaluate(page, `document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = true'}))`);
  await evaluate(page, `document.body.append(Object.assign(document.createElement('img'), {src: 'https://elsewhere.example/x.png'}))`);
  report.is('a script against the policy is seen', await seen.has(f => /inline script.*Content Security Policy/is.test(f)));
  report.is('an image against the policy is seen', await seen.has(f => /elsewhere\.example.*Content Security Policy/is.test(f)));
  seen.take();
  report.is('what the policy forbids does not run', !(await evaluate(page, 'window.ran')));
  await page.goto('about:blank');
  await page.setContent(`<html><body style="background:#fff"><p style="color:#bbb">faint</p><img src="https://elsewhere.example/y.png">
    <input><div style="width:400px">wide</div></body></html>`, {waitUntil: 'commit'});
  report.is('a request to another host is seen', await seen.has(f => f === 'request to elsewhere.example'));
  const found = await audit(page);
  for (const rule of ['color-contrast', 'label', 'image-alt', 'html-has-lang']) {
    report.is(`axe finds ${rule} on a bad page`, found.grave.some(v => v.startsWith(rule + ' ')), found.grave);
  }
  report.is('a wide element is seen', (await overflow(page)) > 0);
  await context.close();
}
