import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
// biome-ignore lint/suspicious/noDeprecatedImports: its replacement is a package of its own.
import { parseAst } from 'vitest/node';

const root = fileURLToPath(new URL('../../src', import.meta.url));

type Node = Record<string, unknown> & { type: string; start: number; end: number };

export interface Source {
  file: string;
  path: string;
  text: string;
  body: Node[];
}

export const sources: Source[] = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => {
    const path = join(root, file);
    const text = readFileSync(path, 'utf8');
    return {
      file,
      path,
      text,
      body: parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }).body as unknown as Node[],
    };
  });

export interface Separators {
  /** Every pattern that is written as a literal. */
  literals: RegExp[];
  /** How many are put together when their file is loaded. */
  constructed: number;
  /** Every short text with a sign in it, such as those at which a function cuts a text or looks for something. */
  signs: string[];
}

/** What a file looks for in texts. */
export function separatorsIn({ body }: Source): Separators {
  const literals: RegExp[] = [];
  let constructed = 0;
  const signs = new Set<string>();
  const look = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(look);
    else if (isNode(node)) {
      const { regex, callee, value, ...children } = node;
      if (regex) literals.push(new RegExp((regex as RegExp & { pattern: string }).pattern, (regex as RegExp).flags));
      if ((callee as { name?: unknown } | undefined)?.name === 'RegExp') constructed++;
      if (typeof value === 'string' && /^(?=.*\W).{1,3}$/s.test(value) && node.type === 'Literal') signs.add(value);
      look([callee, value, ...Object.values(children)]);
    }
  };
  look(body);
  return { literals, constructed, signs: [...signs] };
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && !(value instanceof RegExp);

interface ExportedFunction {
  name: string;
  /** The types of its parameters as written; empty where one is inferred. */
  types: string[];
}

export function exportedFunctions({ body, text }: Source): ExportedFunction[] {
  const typeOf = (parameter: Node): string => {
    const { typeAnnotation: type, right } = parameter as { typeAnnotation?: Node; right?: Node };
    return right ? '' : type ? text.slice(type.start + 1, type.end).trim() : '';
  };
  return body.flatMap(({ type, declaration }) => {
    if (type !== 'ExportNamedDeclaration' || !isNode(declaration)) return [];
    const declared = (declaration.declarations ?? [{ id: declaration.id, init: declaration }]) as {
      id: { name: string };
      init?: { params?: Node[] };
    }[];
    return declared.flatMap(({ id, init }) =>
      init?.params ? [{ name: id.name, types: init.params.map(typeOf) }] : [],
    );
  });
}
