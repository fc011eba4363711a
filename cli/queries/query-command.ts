/** What a command of `causeway query` is. */

/** A command of `causeway query`. */
export interface QueryCommand {
  /**
   * Words behind `query`, for example "bank balances". One word that begins those of others is a command of
   * its own beside them; it stands before them in the table.
   */
  readonly words: string;
  readonly aliases?: readonly string[];
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly description: string;
  /** Fields of the request; one in square brackets may be left out. */
  readonly arguments?: readonly string[];
  /** Flags that set fields of the request: name of the flag and of the field; another name of the flag. */
  readonly fields?: readonly (readonly [string, string, alias?: string])[];
  /** Whether the answer comes in pages. */
  readonly isPaged?: boolean;
  /** The method that answers when a flag or argument of this name is given instead. */
  readonly instead?: readonly [string, string];
  /** What is printed where it is not the whole answer: a name, and the members that lead to its value. */
  readonly shown?: readonly (readonly [string, ...path: readonly string[]])[];
}
