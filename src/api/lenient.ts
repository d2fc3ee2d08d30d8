import * as z from 'zod';

type LenientShape<Shape extends z.ZodRawShape, Essential> = {
  [Key in keyof Shape]: Key extends Essential ? Shape[Key] : z.ZodCatch<z.ZodOptional<Shape[Key]>>;
};

/**
 * Reads an object as documented, but ignores fields of another type: a paid answer is not rejected because of one
 * field. Only the essential fields, which make the object what it is, must be as documented.
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
