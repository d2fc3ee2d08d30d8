import * as z from 'zod';
import { quote, word } from './fence.ts';
import { fullView } from './full.ts';
import { dayOf } from './running.ts';
import { type Fields, isNumber, isObject } from './view.ts';

/** Account, credits and identity are the API's fields as they are, without nulls. */
export const AccountView = z.looseObject({});
export const IdentityView = z.looseObject({});

const TOKENS = 1500;

export const viewAccount = (account: unknown): Fields => fullView(account, TOKENS);
export const viewIdentity = (identity: unknown): Fields => fullView(identity, TOKENS);

/** Beside the API's fields: what is left in each window, and the day the period ends. */
export function viewCredits(status: unknown): Fields {
  const view = fullView(status, TOKENS);
  const ends = dayOf(seconds(view.periodEnd));
  const starts = dayOf(seconds(view.periodStart));
  const usage = isObject(view.usageLimit) ? view.usageLimit : {};
  const hourly = leftOf(usage.hourlyCredits, usage.hourlyLimit);
  const daily = leftOf(usage.dailyCredits, usage.dailyLimit);
  return {
    ...view,
    ...(starts && { periodStartsOn: starts }),
    ...(ends && { periodEndsOn: ends }),
    ...(hourly !== undefined && { hourlyLeft: hourly }),
    ...(daily !== undefined && { dailyLeft: daily }),
  };
}

const seconds = (value: unknown) => (typeof value === 'number' ? value * 1000 : undefined);

function leftOf(used: unknown, limit: unknown): number | undefined {
  const left = isNumber(used) && isNumber(limit) ? Math.max(0, limit - used) : undefined;
  return isNumber(left) ? left : undefined;
}

export function accountText(account: Fields): string {
  return lines([
    said('Account of user', account.userId),
    said('billed to user', account.billingUserId),
    said('plan', account.planId, 'none'),
    said('subscription', account.subscriptionStatus, 'none'),
    member(account.isTeamMember),
  ]);
}

export function creditsText(credits: Fields): string {
  const usage = isObject(credits.usageLimit) ? credits.usageLimit : {};
  const { periodStartsOn: starts, periodEndsOn: ends, credits: left, creditsMax: max } = credits;
  const type = usage.limitType;
  return lines([
    left === undefined
      ? 'credits left: not told'
      : `credits left: ${shown(left)}${max === undefined ? '' : ` of ${shown(max)}`}`,
    ends === undefined ? '' : `period: ${starts === undefined ? '' : `${shown(starts)} `}to ${shown(ends)}`,
    windowText('hourly', usage.hourlyCredits, usage.hourlyLimit),
    windowText('daily', usage.dailyCredits, usage.dailyLimit),
    usage.isLimitReached === true ? `usage limit reached${type === undefined ? '' : `: ${shown(type)}`}` : '',
    usage.isLimitReached === false ? 'usage limit not reached' : '',
    said('plan', credits.planId, 'none'),
    said('billed to user', credits.billingUserId),
  ]);
}

/** `hourly: 320 of 400 used, 80 left`. */
function windowText(name: string, used: unknown, limit: unknown): string {
  const left = leftOf(used, limit);
  return left === undefined ? '' : `${name}: ${used} of ${limit} used, ${left} left`;
}

export function identityText(identity: Fields): string {
  const user = isObject(identity.user) ? identity.user : {};
  const key = isObject(identity.apiKey) ? identity.apiKey : {};
  return lines([
    identity.authenticated === false ? 'not authenticated' : said('authenticated by', identity.authSource),
    said('name', user.name),
    said('email', user.emailAddress),
    accountText(user),
    said('key', key.name),
    said('key id', key.id),
    said('key starts with', key.keyPrefix),
    said('OAuth client', identity.oauthClientId),
  ]);
}

const lines = (parts: string[]) => parts.filter((part) => part).join('\n');

const said = (label: string, value: unknown, otherwise?: string): string =>
  value === undefined ? (otherwise === undefined ? '' : `${label}: ${otherwise}`) : `${label}: ${shown(value)}`;

const member = (value: unknown) =>
  value === true ? 'a member of a team' : value === false ? 'not a member of a team' : '';

function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' ? word(value) : quote(JSON.stringify(value) ?? '');
}
