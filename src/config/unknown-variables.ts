import { isNear, nearestFirst } from '../api/nearest.ts';
import { settings } from './settings.ts';

const prefix = 'AD_LIBRARY_';
const maxNamed = 5;
const maxName = 60;

/** What is wrong with variables that look like settings and are none: whoever set them expects an effect. */
export function unknownVariables(environment: NodeJS.ProcessEnv): string[] {
  const known = Object.values(settings).map(({ variable }) => variable.slice(prefix.length));
  const unknown = Object.keys(environment)
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((name) => !known.includes(name));
  const problems = unknown.slice(0, maxNamed).map((name) => {
    const [nearest = ''] = nearestFirst(name, known);
    const hint = isNear(name, nearest) ? `; did you mean ${prefix}${nearest}?` : '';
    return `${prefix}${name.slice(0, maxName)} is not a setting and has no effect${hint}`;
  });
  const others = unknown.length - problems.length;
  return others > 0 ? [...problems, `${others} more variables that begin with ${prefix} are not settings`] : problems;
}
