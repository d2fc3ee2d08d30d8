import type { Scope } from './config.ts';

/** The key of a request, its account, and the subscription that pays. */
export type Caller = {
  keyId: string;
  keyName: string;
  keyPrefix: string;
  scopes: Scope[];
  /** Calls with the key cost nothing and meet no limits. */
  unmetered: boolean;
  userId: string;
  billingUserId: string;
  name: string | null;
  emailAddress: string | null;
  isTeamMember: boolean;
  planId: string | null;
  subscriptionStatus: string | null;
  creditsMax: number;
  hourlyLimit: number;
  dailyLimit: number;
};
