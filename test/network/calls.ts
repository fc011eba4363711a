/** Calls to a node as a client makes them, one at a time and in batches. */

/** Longest that an answer may take on a busy machine; a frozen node never answers. */
const TIMEOUT_MS = 60_000;

/** Where a node answers. */
export interface Callable {
  readonly evmUrl: string;
  readonly cometUrl: string;
}

/** A call of a batch. */
export interface Call {
  readonly method: string;
  readonly params: unknown;
}

/** Answer to one call. */
export interface Answer<T> {
  readonly id: number;
  readonly result?: T;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The parts of `/status` that the tests look at. */
export interface CometStatus {
  readonly sync_info: {
    readonly latest_block_height: string;
    readonly catching_up: boolean;
  };
  readonly validator_info: { readonly address: string; readonly voting_power: string };
}

/** Answers to a batch of the EVM JSON-RPC, in the order of the calls. */
export function evmBatch<T>(node: Callable, calls: readonly Call[]): Promise<Answer<T>[]> {
  return postBatch(node.evmUrl, calls);
}

/** Results of a batch of the consensus RPC, in the order of the calls. */
export async function cometBatch<T>(node: Callable, calls: readonly Call[]): Promise<T[]> {
  return (await postBatch<T>(node.cometUrl, calls)).map(resultOf);
}

/** Result of one call of the EVM JSON-RPC. */
export async function evm<T>(node: Callable, method: string, params: unknown): Promise<T> {
  const [answer] = await evmBatch<T>(node, [{ method, params }]);
  if (answer === undefined) throw new Error(`${method}: no answer`);
  return resultOf(answer);
}

/** Result of a route of the consensus RPC over GET. */
export async function comet<T>(node: Callable, route: string): Promise<T> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(`${node.cometUrl}/${route}`, { signal });
  return resultOf((await response.json()) as Answer<T>);
}

async function postBatch<T>(url: string, calls: readonly Call[]): Promise<Answer<T>[]> {
  if (calls.length === 0) return [];
  const body = calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const answers = (await response.json()) as Answer<T>[];
  if (answers.length !== calls.length) throw new Error(`${answers.length} of ${calls.length}`);
  return answers.toSorted((left, right) => left.id - right.id);
}

function resultOf<T>({ result, error }: Answer<T>): T {
  if (result === undefined) throw new Error(`refused: ${JSON.stringify(error)}`);
  return result;
}
