import { afterAll, beforeAll } from 'vitest';
import { waitUntil } from './deadline.ts';
import { respondAsDocumented, startUpstream } from './faulty-upstream.ts';
import { createToolCall, createValidHeaders, openConnection } from './http.ts';
import { buildImportFlag, startHttpCommand } from './process.ts';
import { readResult } from './server.ts';

/** The pause between two readiness checks, in milliseconds. Without a pause, the checks would use most of the CPU. */
const readinessPollMs = 100;

const replicaSecret = 'a secret of at least 32 characters';

interface ReplicasOptions {
  count: number;
  /** The store server that holds the shared state. */
  server: { url: string };
  args?: string[];
  environment?: Record<string, string>;
  /** How far each replica's clock is ahead, in minutes. By default, 0. */
  clockAdvanceMinutes?: readonly number[];
}

/** Starts replicas before the first test of a group and closes them after the last test. */
export function startReplicasBeforeAll(options: ReplicasOptions) {
  const replicas = {} as Awaited<ReturnType<typeof startReplicas>>;
  beforeAll(async () => void Object.assign(replicas, await startReplicas(options)));
  afterAll(() => replicas.close?.());
  return replicas;
}

let tenantCount = 0;

/** Starts replicas of the built command in front of one fake API. */
async function startReplicas(options: ReplicasOptions) {
  const upstream = await startUpstream(respondAsDocumented);
  const start = (index: number) => startReplica(upstream.baseUrl, index, options);
  const all = await Promise.all(Array.from({ length: options.count }, (_, index) => start(index)));
  let nextIndex = 0;
  return {
    all,
    upstream,
    /** Creates an API key and sets the API's behavior for it. Tests with different keys do not affect each other. */
    createTenant: (behaviour = respondAsDocumented) => {
      const key = `svc_live_tenant_${++tenantCount}`;
      const replicas = all.map((replica) => ({
        ...replica,
        call: (name: string, args?: object) => replica.call(name, args, key),
        read: (uri: string) => replica.read(uri, key),
      }));
      return {
        upstream: upstream.forKey(key, behaviour),
        /** All replicas. No test starts more than three. */
        replicas: replicas as unknown as [Replica, Replica, Replica],
        /** Calls a tool on the next replica in turn, as a load balancer would. */
        call: (name: string, args?: object) => (all[nextIndex++ % all.length] as Replica).call(name, args, key),
      };
    },
    /** Stops a replica and starts a new one in its place, as an update would. */
    restartReplica: async (index: number) => {
      await all[index]?.close();
      all[index] = await start(index);
    },
    /** Resolves when every replica can serve paid calls. */
    waitUntilReady: async () => {
      for (const replica of all)
        await waitUntil(async () => (await replica.readReadiness()) === 'ready', readinessPollMs).catch(async () => {
          throw new Error(`A replica says: ${await replica.readReadiness()}.`);
        });
    },
    close: async () => {
      await Promise.all(all.map((replica) => replica.kill()));
      await upstream.close();
    },
  };
}

const buildClockEnvironment = (minutes: number) => ({
  NODE_OPTIONS: buildImportFlag(`const now=Date.now;Date.now=()=>now()+${minutes * 60_000}`),
});

/** A running replica. */
export type Replica = Awaited<ReturnType<typeof startReplica>>;
/** An API key, and functions that call the replicas with this key. */
export type Tenant = ReturnType<Awaited<ReturnType<typeof startReplicas>>['createTenant']>;

/** Starts one of several server processes that share their state. */
async function startReplica(
  baseUrl: string,
  index: number,
  { server, args = [], environment = {}, clockAdvanceMinutes }: ReplicasOptions,
) {
  const state = { AD_LIBRARY_STATE_URL: server.url, AD_LIBRARY_STATE_SECRET: replicaSecret };
  const httpCommand = await startHttpCommand(['--base-url', baseUrl, '--log-level', 'info', ...args], {
    ...{ ...state, ...environment },
    ...(clockAdvanceMinutes && buildClockEnvironment(clockAdvanceMinutes[index] ?? 0)),
  });
  // Use a new connection for each request, because a single connection handles requests in sequence.
  const send = async (request: Parameters<ReturnType<typeof openConnection>['send']>[0]) => {
    const connection = openConnection(httpCommand.origin);
    try {
      return await connection.send(request);
    } finally {
      connection.close();
    }
  };
  const get = (path: string) => send({ method: 'GET', path });
  const postMessage = async (body: object, key?: string) =>
    (await send({ headers: createValidHeaders(key), body: JSON.stringify(body) })).json.result;
  return {
    ...httpCommand,
    get,
    /** Returns `ready` if the replica can serve paid calls, `away` if it cannot reach the store, or `draining`. */
    readReadiness: async (): Promise<string> => {
      const { status, state } = (await get('/readyz')).json;
      return status === 'ready' && state === 'away' ? state : status;
    },
    call: async (name: string, args: object = {}, key?: string) =>
      readResult(await postMessage(createToolCall(name, args), key)),
    /** Reads a resource as an MCP host would. Rejects if the server returns an error. */
    read: async (uri: string, key?: string): Promise<string> =>
      (await postMessage({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri } }, key)).contents[0].text,
    kill: async () => {
      httpCommand.process.child.kill('SIGKILL');
      await httpCommand.process.ended;
    },
  };
}
