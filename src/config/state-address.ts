import * as z from 'zod';

/** Where the shared state is: one server, a cluster, or whatever Sentinel names as the primary. */
export interface StateAddress {
  tls: boolean;
  hosts: { host: string; port: number }[];
  username?: string;
  password?: string;
  database?: number;
  cluster?: true;
  /** The name of the primary that Sentinel watches; the hosts are then Sentinels, which may have a login of their own. */
  sentinel?: string;
  sentinelUser?: string;
  sentinelPassword?: string;
}

const sentinels = /sentinel=([\w.-]+)(?:&sentinelUser=([^&#]*))?(?:&sentinelPassword=([^&#]*))?/;
const form = new RegExp(
  String.raw`^(rediss?)://(?:([^@/?#]*)@)?([^@/?#]+)(?:/(\d{0,4}))?(?:\?(cluster|${sentinels.source}))?$`,
);
const wanted =
  'must be redis:// or rediss:// and user:password@host:port/database, for a cluster host:port,host:port?cluster, for Sentinel host:port,host:port?sentinel=NAME, then &sentinelUser=USER and &sentinelPassword=PASSWORD if Sentinel wants a login';

/** No message repeats the address, because it may contain a password. */
export const stateAddress = z.string().transform((text, context): StateAddress => {
  const address = parsed(text);
  if (typeof address === 'object') return address;
  context.addIssue({ code: 'custom', message: address });
  return z.NEVER;
});

function parsed(text: string): StateAddress | string {
  const [, scheme, login = '', list = '', database = '', kind = '', sentinel, ...sentinelLogin] = form.exec(text) ?? [];
  const hosts = list.split(',').map(hostOf);
  const [names, sentinelNames] = [decoded(login), decoded(sentinelLogin.map((part) => part ?? '').join(':'))];
  if (scheme === undefined || !names || !sentinelNames || !hosts.every((host) => host !== undefined)) return wanted;
  const [[username, password], [sentinelUser, sentinelPassword]] = [names, sentinelNames];
  if (hosts.length > 1 && kind === '') return 'names several hosts, so it must end with ?cluster or ?sentinel=NAME';
  if (kind === 'cluster' && Number(database) > 0) return 'must name no database, because a cluster has only one';
  return {
    tls: scheme === 'rediss',
    hosts,
    ...(username && { username }),
    ...(password && { password }),
    ...(database && { database: Number(database) }),
    ...(kind === 'cluster' && { cluster: true }),
    ...(sentinel && { sentinel }),
    ...(sentinelUser && { sentinelUser }),
    ...(sentinelPassword && { sentinelPassword }),
  };
}

function hostOf(text: string): StateAddress['hosts'][number] | undefined {
  const url = /^[\w.:[\]-]+$/.test(text) && URL.canParse(`redis://${text}`) ? new URL(`redis://${text}`) : undefined;
  if (!url?.hostname) return undefined;
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(url.port || 6379) };
}

/** User and password; undefined if they cannot be decoded. */
function decoded(login: string): string[] | undefined {
  const colon = login.indexOf(':');
  const parts = colon < 0 ? [login] : [login.slice(0, colon), login.slice(colon + 1)];
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
