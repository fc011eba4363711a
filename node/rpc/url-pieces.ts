/** What stands between the `&` of a URL's query. */

/** Pieces of one query; more are refused before they are read. */
export const MAX_URL_PIECES = 200;

/** The pieces in their order, without empty ones; undefined where there are too many to be read. */
export function urlPieces(query: string): readonly string[] | undefined {
  const pieces = query.split("&").filter((piece) => piece !== "");
  return pieces.length > MAX_URL_PIECES ? undefined : pieces;
}
