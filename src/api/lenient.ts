import * as z from 'zod';

type LenientShape<Shape extends z.ZodRawShape, Essential> = {
  [Key in keyof Shape]: Key extends Essential ? Shape[Key] : z.ZodCatch<z.ZodOptional<Shape[Key]>>;
};

/**
 * Reads an object as documented, but lets a field that is missing or of another type than documented count as
 * absent: an answer that was paid for is not refused over one field. Only the essential fields, without which the
 * object is not that object at all, must be as documented.
 */
export function lenient<Shape extends z.ZodRawShape, Essential extends keyof Shape & string>(
  schema: z.ZodObject<Shape, z.core.$loose>,
  essential: readonly Essential[],
) {
  const shape = Object.fromEntries(
    Object.entries(schema.shape).map(([key, field]) => [
      key,
      (essential as readonly string[]).includes(key) ? field : z.optional(field).catch(undefined),
    ]),
  );
  return z.looseObject(shape as LenientShape<Shape, Essential>);
}
