import { setTimeout as wait } from 'node:timers/promises';
import type { RedisArgument } from '@redis/client';
import { later, soon } from '../store/soon.ts';
import { stateUnavailable } from '../store/state-error.ts';
import type { StateLog } from '../store/state-log.ts';
import { commandsOf, isNotNow, type RedisCommands, replyOf, unlessReply } from './redis-commands.ts';
import { openDriver, type RedisDriver, type StateAddress } from './redis-driver.ts';
import { RedisMemory } from './redis-memory.ts';

/** How long a command may take, in milliseconds, and all commands together without a fast one in between. */
const commandMs = 900;
/** A command that takes longer is slow. */
const slowMs = 100;
/** Different problems logged while Redis is away. */
const maxProblems = 20;
/** How long to wait between attempts to reach Redis again, and how many fail before a new connection is made. */
const probeEvery = 250;
const probesPerDriver = 8;
/** Writes that leave nothing behind: one that takes no room, and one that does. */
const probeKey = 'ad-library:probe';
const probe = ['DEL', probeKey];
const roomProbe = ['SET', probeKey, '', 'PX', '1'];

/**
 * The connection to Redis. A command that fails or takes too long takes it down: from then on commands are refused at
 * once, so that no call is held, until Redis answers again.
 */
export class RedisConnection implements RedisCommands {
  readonly memory: RedisMemory;
  readonly #address: StateAddress;
  readonly #log: StateLog;
  readonly #listeners = new Map<string, (message: string) => void>();
  /** Channels that the driver is not subscribed to yet. */
  #unheard = new Set<string>();
  readonly #commands = commandsOf((key, args) => this.send(key, args));
  readonly #hooks: ((commands: RedisCommands) => Promise<void>)[] = [];
  #driver: RedisDriver | undefined;
  #isUp = false;
  #isClosed = false;
  #healing: Promise<void> | undefined;
  /** What has gone wrong since Redis was last reached. */
  readonly #problems = new Set<string>();
  /** When the first command was sent since which all were slow. */
  #slowSince = Infinity;

  constructor(address: StateAddress, log: StateLog) {
    this.#address = address;
    this.#log = log;
    this.memory = new RedisMemory({
      info: () => soon(this.#driver?.send(undefined, ['INFO', 'memory']), slowMs),
      write: () => this.send(probeKey, roomProbe),
      log,
    });
  }

  isUp(): boolean {
    return this.#isUp;
  }

  /** Runs whenever Redis can be reached anew, before any other command is sent. */
  onUp(hook: (commands: RedisCommands) => Promise<void>): void {
    this.#hooks.push(hook);
  }

  /** Connects in the background; resolves when Redis answers, or after so many milliseconds without it. */
  async open(ms: number): Promise<void> {
    this.#heal();
    await Promise.race([this.#healing, wait(ms, undefined, { ref: false })]);
    if (!this.#isUp)
      this.#log.warn('the shared state cannot be reached yet', {
        hosts: this.#hosts(),
        problem: [...this.#problems].join('; '),
      });
  }

  async send(key: string, args: readonly RedisArgument[]): Promise<unknown> {
    if (!this.#isUp) throw stateUnavailable();
    return this.#send(key, args);
  }

  run(...call: Parameters<RedisCommands['run']>): Promise<unknown> {
    return this.#commands.run(...call);
  }

  /** Receives what is published on a channel, whenever Redis can be reached. Messages may be lost. */
  async listen(channel: string, listener: (message: string) => void): Promise<void> {
    this.#listeners.set(channel, listener);
    this.#unheard.add(channel);
    if (this.#isUp) await this.#subscribe();
  }

  close(): void {
    this.#isClosed = true;
    this.#isUp = false;
    this.memory.close();
    this.#driver?.destroy();
  }

  async #send(key: string, args: readonly RedisArgument[]): Promise<unknown> {
    const sent = performance.now();
    let isSlow = false;
    const stop = later(slowMs, () => {
      isSlow = true;
      this.#slowSince = Math.min(this.#slowSince, sent);
    });
    try {
      return await this.#ask(key, args);
    } catch (error) {
      // An error that Redis states concerns one command, unless it says that this is not the time for any.
      const reply = replyOf(error);
      if (reply === undefined || isNotNow(reply)) this.#fall(error);
      throw stateUnavailable(error);
    } finally {
      stop();
      if (!isSlow) this.#slowSince = Infinity;
      // A call needs several commands.
      else if (performance.now() - this.#slowSince > commandMs) this.#fall(new Error('every answer is slow'));
    }
  }

  async #ask(key: string, args: readonly RedisArgument[]): Promise<unknown> {
    try {
      return await soon(this.#driver?.send(key, args), commandMs);
    } catch (error) {
      this.memory.refused(replyOf(error) ?? '');
      throw error;
    }
  }

  #fall(error: unknown): void {
    if (this.#isClosed) return;
    this.#report(error);
    this.#isUp = false;
    this.#heal();
  }

  /** Logs a problem, but not again and again. */
  #report(error: unknown): void {
    const { message: problem } = error as Error;
    if (this.#problems.size >= maxProblems) return;
    if (this.#isUp) this.#log.warn('the shared state cannot be reached', { hosts: this.#hosts(), problem });
    else if (!this.#problems.has(problem)) this.#log.info('the shared state cannot be reached', { problem });
    this.#problems.add(problem);
  }

  #heal(): void {
    this.#healing ??= this.#reach().finally(() => {
      this.#healing = undefined;
    });
  }

  async #reach(): Promise<void> {
    let isAnew = false;
    for (let attempt = 1; !this.#isClosed && !this.#isUp; attempt++) {
      try {
        await this.#attempt(isAnew);
      } catch (error) {
        this.#report(error);
        isAnew = isDemoted(error) || attempt % probesPerDriver === 0;
        await wait(probeEvery, undefined, { ref: false });
      }
    }
  }

  /** @param isAnew gives up the connection, which the network may have lost without anybody noticing */
  async #attempt(isAnew: boolean): Promise<void> {
    if (isAnew) this.#driver?.destroy();
    if (isAnew || this.#driver === undefined) await this.#connect();
    const commands = commandsOf((key, args) => this.#ask(key, args));
    // While it loads its data, or follows another server, Redis answers some commands and refuses what hooks write.
    await commands.send(probeKey, probe).catch(unlessReply);
    await this.memory.check();
    await this.#subscribe();
    for (const hook of this.#hooks) await hook(commands);
    if (this.#isClosed) return;
    this.#slowSince = Infinity;
    this.#problems.clear();
    this.#isUp = true;
    this.#log.info('the shared state can be reached', { hosts: this.#hosts() });
  }

  async #connect(): Promise<void> {
    const driver = openDriver(this.#address, (error) => this.#fall(error));
    this.#driver = driver;
    this.#unheard = new Set(this.#listeners.keys());
    // If that takes longer, it goes on trying by itself.
    await soon(driver.connect(), commandMs);
  }

  /** Subscribes where this driver has not yet; it does so again by itself whenever it reconnects. */
  async #subscribe(): Promise<void> {
    for (const channel of this.#unheard) {
      const listener = this.#listeners.get(channel);
      if (listener) await soon(this.#driver?.subscribe(channel, listener), commandMs);
      this.#unheard.delete(channel);
    }
  }

  #hosts(): string {
    return this.#address.hosts.map(({ host, port }) => `${host}:${port}`).join(',');
  }
}

/** The server has become a replica of another one, which keeps its connections open: new ones may lead to that. */
const isDemoted = (error: unknown) => /^(?:READONLY|MASTERDOWN) /.test(replyOf(error) ?? '');
