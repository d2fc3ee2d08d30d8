import type { CallRegister } from '../api/in-flight-calls.ts';

export interface CallRegisterOptions {
  /** Calls in progress, per tenant and in total. */
  maxPerTenant: number;
  maxInAll: number;
}

/** The calls in progress of one process. */
export function memoryCallRegister({ maxPerTenant, maxInAll }: CallRegisterOptions): CallRegister {
  const perTenant = new Map<string, number>();
  let inAll = 0;
  return {
    begin: async (tenantId) => {
      const ofTenant = perTenant.get(tenantId) ?? 0;
      if (inAll >= maxInAll || ofTenant >= maxPerTenant) return false;
      perTenant.set(tenantId, ofTenant + 1);
      inAll++;
      return true;
    },
    end: async (tenantId) => {
      const left = (perTenant.get(tenantId) ?? 1) - 1;
      if (left === 0) perTenant.delete(tenantId);
      else perTenant.set(tenantId, left);
      inAll--;
    },
  };
}
