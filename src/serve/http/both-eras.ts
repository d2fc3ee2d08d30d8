import { isLegacyRequest } from '@modelcontextprotocol/server';
import type { Catalog } from '../../mcp/catalog.ts';
import { claimsModern, messagesIn } from '../messages.ts';
import type { Serve } from './exchange.ts';
import { isPlain, legacyEra } from './legacy-era.ts';
import { modernEra } from './modern-era.ts';

/**
 * Answers each request in the era it speaks. Whatever is a plain request goes to a server that is kept connected, one
 * at a time; whatever is not, to one of its own. The key comes with every message, so no server holds one.
 */
export function serveBothEras(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const legacy = legacyEra(catalog);
  const modern = modernEra(catalog, onerror);
  return async (exchange) => {
    const { request, body } = exchange;
    if (isPlain(exchange)) return legacy.ask(exchange);
    const isModern = messagesIn(body).some(claimsModern) || !(await isLegacyRequest(request, body));
    return isModern ? modern(exchange) : legacy.serve(exchange);
  };
}
