// Asks the browser for a passkey and posts its answer with the form. Forms stay hidden where there are no passkeys.
(() => {
  'use strict';
  if (!window.PublicKeyCredential) return;
  const bytes = s => Uint8Array.from(atob(s.replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0));
  const text = b => b ? btoa(String.fromCharCode(...new Uint8Array(b))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '') : undefined;
  const ask = async form => {
    const options = JSON.parse(form.dataset.options).publicKey;
    options.challenge = bytes(options.challenge);
    for (const c of [...(options.excludeCredentials || []), ...(options.allowCredentials || [])]) c.id = bytes(c.id);
    if (form.dataset.passkey === 'get') return navigator.credentials.get({publicKey: options});
    options.user.id = bytes(options.user.id);
    return navigator.credentials.create({publicKey: options});
  };
  const answer = c => JSON.stringify({
    id: c.id, rawId: text(c.rawId), type: c.type, clientExtensionResults: {},
    authenticatorAttachment: c.authenticatorAttachment || undefined,
    response: {
      clientDataJSON: text(c.response.clientDataJSON), attestationObject: text(c.response.attestationObject),
      authenticatorData: text(c.response.authenticatorData), signature: text(c.response.signature), userHandle: text(c.response.userHandle),
      transports: c.response.getTransports ? c.response.getTransports() : undefined,
    },
  });
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    form.hidden = false;
    form.addEventListener('submit', event => {
      event.preventDefault();
      const failed = form.querySelector('[data-failed]');
      failed.hidden = true;
      ask(form).then(c => {
        form.elements.response.value = answer(c);
        form.submit();
      }).catch(() => { failed.hidden = false; });
    });
  }
})();
