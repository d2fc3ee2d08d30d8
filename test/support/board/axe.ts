import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator } from 'playwright-core';

const axeScript = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Runs the accessibility checker axe on a page and returns each violated rule with its first element. Also works if the
 * page forbids scripts.
 */
export const findViolations = (html: Locator) =>
  html.evaluate(async (_, axe) => {
    const loadAxe = new Function(`${axe}; return axe`);
    const { violations } = await loadAxe().run({ resultTypes: ['violations'] });
    return violations.map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => [id, nodes[0]?.html]);
  }, axeScript);
