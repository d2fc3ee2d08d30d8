import type { ItemType } from '../../api/schemas.ts';
import { recordTypes } from '../ads-and-pages.ts';
import { findPage } from '../search.ts';
import type { ServiceContext } from '../service-context.ts';

/** Two collections beside the default ones, and one of a colleague. */
export function fillCollections({ database, collections }: ServiceContext, userId: string): void {
  const billingUserId = userId;
  const colleague = `c0${userId.slice(2)}`;
  const best = (kind: ItemType, filters: Record<string, string | string[] | boolean>, limit: number) =>
    findPage(database, { recordType: recordTypes[kind], filters, asOf: 0 }, limit).numbers;
  const make = (owner: string, name: string, type: string, ads: number[], pages: number[]) => {
    const id = collections.create({ userId: owner, billingUserId }, { name, type, defaultType: null });
    const number = database.get<{ number: number }>('SELECT number FROM collections WHERE id = ?', [id])?.number ?? 0;
    for (const [kind, items] of [['ads', ads] as const, ['pages', pages] as const]) {
      for (const item of items) collections.add(number, kind, item);
    }
  };
  database.transaction(() => {
    database.run("UPDATE accounts SET name = 'Demo Person', emailAddress = 'person@demo.example' WHERE userId = ?", [
      userId,
    ]);
    database.run("INSERT INTO accounts VALUES (?, ?, 'Demo Colleague', 'colleague@demo.example', 1)", [
      colleague,
      userId,
    ]);
    make(userId, 'Skincare that lasts', 'personal', best('ads', { query: 'serum', sort: 'daysRunning' }, 12), []);
    make(userId, 'Advertisers to watch', 'personal', [], best('pages', { sort: 'trend' }, 8));
    make(colleague, 'Team swipe file', 'team', best('ads', { sort: 'performancePublic' }, 60), best('pages', {}, 3));
  });
}
