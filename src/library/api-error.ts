/** An error that the API answers with. Everything but `status` becomes the documented error body. */
export class ApiError extends Error {
  readonly status: 401 | 402 | 403 | 404 | 405 | 422 | 429 | 503;
  readonly code: string;
  readonly details: unknown;

  constructor(status: ApiError['status'], code: string, message: string, details?: unknown) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** 422. The message says what was wrong and what is allowed. */
export const invalid = (message: string, details?: unknown) => new ApiError(422, 'invalid_request', message, details);

/** A value as an error message quotes it. */
export const quoted = (value: unknown): string => String(JSON.stringify(value)).slice(0, 100);

/** 404: collection, item, ad or page not found. */
export const notFound = (what: string, id: string) => new ApiError(404, 'not_found', `No ${what} with the id ${id}.`);
