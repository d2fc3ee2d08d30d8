import type { z } from 'zod';

/**
 * Data that fits the output schema that was listed, as the specification demands (*Tools*, *Output Schema*): clients
 * refuse a whole result over one field. What does not fit is a field of the service's that bears a name of ours; it is
 * left out here and stands in the text.
 */
export function keepToSchema<Data extends object>(schema: z.ZodObject, data: Data): Data {
  const parsed = schema.safeParse(data);
  if (parsed.success) return data;
  const fitting = structuredClone(data);
  for (const { path } of parsed.error.issues) {
    const name = path.at(-1);
    const owner = path
      .slice(0, -1)
      .reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown>)[key], fitting);
    if (name !== undefined) delete (owner as Record<PropertyKey, unknown>)[name];
  }
  return fitting;
}
