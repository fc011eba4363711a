/** Rows of the Cosmos interfaces: one account's balance by REST and by gRPC, beside ours by Ethereum's JSON-RPC. */
import { QueryBalanceRequest } from "cosmjs-types/cosmos/bank/v1beta1/query";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { BASE_DENOM } from "../../../chain/units.js";
import { grpcLoop } from "../grpc-load.js";
import { closedLoop, encodeCall, encodeRequest, type LoadResult } from "../http-load.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createSenders } from "../senders.js";
import { createBenchHome, startPart } from "../targets/causeway-target.js";
import type { RunLength } from "./chain-rows.js";

/** Names of the rows here, for `--only`. */
export const BALANCE_ROWS = ["balances"] as const;

/** What the rows are run with. */
export interface BalanceRowsOptions {
  readonly length: RunLength;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

const CONNECTIONS = 4;

/** Runs the rows. */
export async function runBalanceRows(options: BalanceRowsOptions): Promise<BenchRow[]> {
  const { length, profileFolder, say } = options;
  const [owner] = createSenders(1, "balances");
  if (owner === undefined) throw new Error("no account");
  const home = await createBenchHome({ funded: [owner.address] });
  const node = await startPart(home, "node", profileFolder);
  try {
    const address = toBech32(parseAddress(owner.address));
    const loop = { connections: CONNECTIONS, durationMs: length.readMs };
    const http = (url: string, bytes: Buffer) => closedLoop({ ...loop, url, next: () => bytes });
    const [evm, rest] = [home.url("jsonRpc"), home.url("rest")];
    const path = `/cosmos/bank/v1beta1/balances/${address}/by_denom?denom=${BASE_DENOM}`;
    const request = QueryBalanceRequest.encode({ address, denom: BASE_DENOM }).finish();
    const loads = {
      evm: () => http(evm, encodeCall(evm, "eth_getBalance", [owner.address, "latest"])),
      rest: () => http(rest, encodeRequest(rest, { path, method: "GET" })),
      grpc: () =>
        grpcLoop({
          ...loop,
          target: new URL(home.url("grpc")).host,
          path: "/cosmos.bank.v1beta1.Query/Balance",
          request,
        }),
    };
    // The first calls compile what the others use.
    for (const load of Object.values(loads)) await load();
    const beside = await loads.evm();
    say(`eth_getBalance: ${formatFigure(beside.perSecond)}/s`);
    const rows: BenchRow[] = [];
    for (const [title, load] of [
      ["balance of an account by REST", loads.rest],
      ["balance of an account by gRPC", loads.grpc],
    ] as const) {
      const result = await load();
      say(`${title}: ${formatFigure(result.perSecond)}/s`);
      rows.push(balanceRow(title, result, beside));
    }
    return rows;
  } finally {
    await node.stop();
    home.remove();
  }
}

function balanceRow(title: string, own: LoadResult, beside: LoadResult): BenchRow {
  const latency = ({ p50Ms, p99Ms }: LoadResult) =>
    `p50 ${formatFigure(p50Ms)} ms, p99 ${formatFigure(p99Ms)} ms`;
  return {
    title,
    unit: "requests/s",
    ours: own.perSecond,
    peer: beside.perSecond,
    peerName: "our 8545",
    details: [`${latency(own)}; eth_getBalance ${latency(beside)}`],
  };
}
