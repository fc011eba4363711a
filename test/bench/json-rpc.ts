/** JSON-RPC for setting up and checking a benchmark, where speed does not matter. */

/** Calls one method. Throws Error with the server's text. */
export async function callRpc<T>(
  url: string,
  method: string,
  params: readonly unknown[],
): Promise<T> {
  const [result] = await callRpcBatch<T>(url, [{ method, params }]);
  return result as T;
}

/** Calls many methods in one request; results in order. Throws Error with the first fault. */
export async function callRpcBatch<T>(
  url: string,
  calls: readonly { readonly method: string; readonly params: readonly unknown[] }[],
): Promise<T[]> {
  const body = calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answers = (await response.json()) as {
    id: number;
    result: T;
    error?: { message: string };
  }[];
  return answers
    .toSorted((left, right) => left.id - right.id)
    .map(({ result, error, id }) => {
      if (error === undefined) return result;
      throw new Error(`${calls[id]?.method ?? "call"} failed: ${error.message}`);
    });
}

/** Height of the newest block. */
export async function blockNumber(url: string): Promise<number> {
  return Number(await callRpc<string>(url, "eth_blockNumber", []));
}

/** Transactions in a block. */
export async function transactionCount(url: string, height: number): Promise<number> {
  const params = [`0x${height.toString(16)}`];
  return Number(await callRpc<string>(url, "eth_getBlockTransactionCountByNumber", params));
}
