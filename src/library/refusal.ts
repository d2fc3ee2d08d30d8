/** A request the API turns down. Everything but `status` becomes the documented error body. */
export class Refusal extends Error {
  readonly status: 401 | 402 | 403 | 404 | 405 | 422 | 429 | 503;
  readonly code: string;
  readonly details: unknown;

  constructor(status: Refusal['status'], code: string, message: string, details?: unknown) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** 422: what was wrong, in one sentence a caller can act on. */
export const invalid = (message: string, details?: unknown) => new Refusal(422, 'invalid_request', message, details);

/** 404: collection, item, ad or page not found. */
export const notFound = (what: string, id: string) => new Refusal(404, 'not_found', `No ${what} with the id ${id}.`);
