/**
 * The functions that the server needs for API calls. `app.ts` loads this module at the first call, because the server
 * lists its tools without these functions and must start fast.
 */
export { createApi } from './api/client.ts';
export { createHttpSender, createUndiciFetch } from './api/http.ts';
export { wrapWithKeyRecording } from './cache/accepted-keys.ts';
export { openCallCache } from './cache/call-cache.ts';
export { createMeter } from './credits/meter.ts';
export { createCallerFunctions } from './mcp/caller-context.ts';
export { getExportsFolder } from './storage/exports.ts';
export { createMemoryLedger } from './storage/in-memory.ts';
export { createSingleUserAcceptedKeys } from './storage/keys.ts';
export { openState } from './storage/open.ts';
