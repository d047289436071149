package page

// style is the only style sheet. styleHash is its SHA-256 for the policy; a test computes it anew.
const (
	style markup = `:root{color-scheme:light dark;--bg:#f6f6f3;--card:#fff;--ink:#1b1b1a;--dim:#595956;--line:#cfcfc9;--act:#0b57d0;--on:#fff;--warn:#fff3d6;--warnink:#5a3b00}` +
		`@media(prefers-color-scheme:dark){:root{--bg:#141413;--card:#1f1f1d;--ink:#f0f0ec;--dim:#b4b4ad;--line:#45453f;--act:#8ab4f8;--on:#10213d;--warn:#3d2f0c;--warnink:#ffe2a0}}` +
		`*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}` +
		`main{max-width:34rem;margin:0 auto;padding:1.5rem 1rem 3rem;overflow-wrap:anywhere}` +
		`.service{color:var(--dim);margin:0 0 1rem;font-weight:600}h1{font-size:1.25rem;line-height:1.3;margin:0 0 1rem}` +
		`h1 .host{display:block;font-size:1.75rem}h2{font-size:1rem;margin:1.5rem 0 .5rem}` +
		`.card,fieldset{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:1rem;margin:0 0 1rem}` +
		`legend{font-weight:600;padding:0 .25rem}.dim{color:var(--dim)}.warn{background:var(--warn);color:var(--warnink);border-radius:.5rem;padding:.75rem 1rem;margin:0 0 1rem}` +
		`dl{margin:0}dt{color:var(--dim);font-size:.875rem}dd{margin:0 0 .5rem}ul{margin:0;padding:0;list-style:none}` +
		`.card p,fieldset p{margin:0 0 .75rem}.card>:last-child,fieldset>:last-child,dd:last-child{margin-bottom:0}.card button+p{margin-top:.75rem}ul+p{margin-top:.75rem}li{padding:.25rem 0}label{display:flex;gap:.6rem;align-items:flex-start;min-height:1.75rem}label input{margin:.2rem 0 0;flex:none;width:1.1rem;height:1.1rem}` +
		`.entry{display:block}.entry input{display:block;width:100%;height:auto;margin:.25rem 0 0;padding:.6rem;font:inherit;color:inherit;background:var(--bg);border:1px solid var(--dim);border-radius:.375rem}` +
		`.acts{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0}button,.button{font:inherit;font-weight:600;min-height:2.75rem;padding:.5rem 1.25rem;border-radius:.375rem;border:1px solid var(--dim);background:transparent;color:var(--ink);cursor:pointer;text-decoration:none;display:inline-block}` +
		`button.main{background:var(--act);border-color:var(--act);color:var(--on)}button.link{border:0;padding:0;min-height:0;color:var(--act);text-decoration:underline;font-weight:400}` +
		`a{color:var(--act)}:focus-visible{outline:3px solid var(--act);outline-offset:2px}` +
		`pre{background:var(--bg);border:1px solid var(--line);border-radius:.375rem;padding:.75rem;overflow-x:auto;white-space:pre-wrap;margin:.25rem 0 .75rem;font:.875rem/1.45 ui-monospace,monospace}`

	styleHash = "sha256-t9YH7Qu++S8+tp98Kdvlh2bDACyTIGKYtCFtrgp04MA="
)
