/** Servers of one SDK line: each serves one request at a time, and waits here in between. */
export interface IdleServers<Server> {
  take(): Server;
  giveBack(server: Server): void;
}

/** As many as wait without being needed for long. */
const mostIdle = 64;

/** Building a server costs more than most calls do. */
export function idleServers<Server>(build: () => Server): IdleServers<Server> {
  const idle: Server[] = [];
  return {
    take: () => idle.pop() ?? build(),
    giveBack: (server) => {
      if (idle.length < mostIdle) idle.push(server);
    },
  };
}
