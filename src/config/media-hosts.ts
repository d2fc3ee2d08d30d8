import { names } from './setting-values.ts';

/** Where pictures may be fetched from: a list of `public`, `none`, `host` (on every port) and `host:port`. */
export const mediaHosts = names.transform((given, context) => {
  const all = given.map((name) => name.toLowerCase());
  const hosts = all.filter((name) => name !== 'public' && name !== 'none');
  const wrong = hosts.filter((name) => listedHost(name) === undefined);
  const report = (message: string) => context.addIssue({ code: 'custom', message });
  if (wrong.length > 0)
    report(`must contain only public, none, host names and host:port, without a scheme or a path: ${wrong.join(', ')}`);
  if (all.includes('none') && all.length > 1) report('must not contain anything beside none');
  return { public: all.includes('public'), listed: hosts.flatMap((name) => listedHost(name) ?? []) };
});

/** The name as addresses spell it. An IPv6 address stands in brackets. */
function listedHost(name: string): { host: string; port?: number } | undefined {
  const [, host = '', port] = /^(\[[\da-f:.]+\]|[^\s:/?#@\\*%[\]]+)(?::(\d{1,5}))?$/i.exec(name) ?? [];
  const address = `http://${host}:${port ?? ''}`;
  if (host === '' || !URL.canParse(address) || Number(port) === 0) return undefined;
  return { host: new URL(address).hostname, ...(port !== undefined && { port: Number(port) }) };
}
