import { serveLibrary } from '../../../src/library/commands.ts';
import { onLoopback } from './on-loopback.ts';

const { database } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const { url } = await serveLibrary({ database, listen: onLoopback, now: () => Date.now() });
process.stdout.write(JSON.stringify({ url }));
