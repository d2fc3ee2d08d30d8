import { describe } from 'vitest';
import { clientKinds, connectHttp } from '../support/clients.ts';
import { serveHttp } from '../support/process.ts';
import { servesTheTools } from '../support/serves-the-tools.ts';

describe.each(clientKinds)('a %s client over HTTP', (kind) => {
  servesTheTools(async (args) => {
    const served = await serveHttp(args);
    const client = await connectHttp(kind, served.url, 'svc_live_not_known');
    return {
      ...client,
      close: async () => {
        await client.close();
        await served.close();
      },
    };
  });
});
