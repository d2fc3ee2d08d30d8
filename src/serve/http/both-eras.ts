import { isLegacyRequest } from '@modelcontextprotocol/server';
import type { Catalog } from '../../mcp/catalog.ts';
import { claimsModern, messagesIn } from '../messages.ts';
import type { Serve } from './http-call.ts';
import { legacyEra } from './legacy-era.ts';
import { modernEra } from './modern-era.ts';

/** Answers each request in the era it speaks. */
export function serveBothEras(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const legacy = legacyEra(catalog);
  const modern = modernEra(catalog, onerror);
  return async (call) => {
    const { request, body } = call;
    const isModern = messagesIn(body).some(claimsModern) || !(await isLegacyRequest(request, body));
    return isModern ? modern(call) : legacy(call);
  };
}
