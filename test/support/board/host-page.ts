/**
 * A small host: it shows the board in a sandboxed frame of an origin of its own, as MCP Apps wants it, answers what the
 * board asks, and keeps every message. Runs in the browser, so it is text here.
 */
export const hostPage = (
  board: string,
  { width, height }: { width: number; height: number },
): string => `<!doctype html>
<meta charset="utf-8"><title>Host</title>
<style>body { margin: 0 } iframe { border: 0; display: block; width: ${width}px; height: ${height}px }</style>
<iframe title="board" sandbox="allow-scripts"></iframe>
<script type="module">
  const frame = document.querySelector('iframe');
  const post = (message) => frame.contentWindow.postMessage({ jsonrpc: '2.0', ...message }, '*');
  window.received = [];
  window.notify = (method, params) => post({ method, params });
  window.asked = 0;
  window.ask = (method, params = {}) => new Promise((resolve) => {
    const id = 'host-' + ++window.asked;
    window.addEventListener('message', function listen({ data }) {
      if (data.id !== id || data.method) return;
      window.removeEventListener('message', listen);
      resolve(data.result ?? data.error);
    });
    post({ id, method, params });
  });
  const answers = {
    'ui/initialize': () => window.hostInitialize(),
    'tools/call': (params) => window.hostCallTool(params),
    'ui/request-display-mode': ({ mode }) => ({ mode }),
    'ui/open-link': () => ({}),
    'ui/message': () => ({}),
    'ui/update-model-context': () => ({}),
  };
  window.addEventListener('message', async ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    const { id, method, params } = data;
    if (!method) return;
    window.received.push({ method, params });
    if (method === 'ui/notifications/initialized') return window.hostReady();
    if (id === undefined) return;
    try {
      const refused = window.refusing?.[method];
      if (window.hushed === method) return;
      if (refused) post({ id, error: { code: -32000, message: refused } });
      else if (answers[method]) post({ id, result: await answers[method](params) });
      else post({ id, error: { code: -32601, message: 'Method not found' } });
    } catch (error) {
      post({ id, error: { code: -32000, message: error.message.split('\\n')[0] } });
    }
  });
  frame.srcdoc = ${JSON.stringify(board).replaceAll('<', '\\u003c')};
</script>`;
