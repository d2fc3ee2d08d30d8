import { serveLibrary } from '../../../src/library/commands.ts';

const { database } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const { url } = await serveLibrary({ database, host: '127.0.0.1', port: 0, now: () => Date.now() });
process.stdout.write(JSON.stringify({ url }));
