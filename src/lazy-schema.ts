/**
 * Returns a function that creates a Zod schema at its first call and returns the same schema at later calls. Creating a
 * schema with many fields takes about a millisecond, and most processes use only a few of the schemas.
 */
export function createSchemaLazily<Schema>(createSchema: () => Schema): () => Schema {
  let schema: Schema | undefined;
  return () => {
    schema ??= createSchema();
    return schema;
  };
}
