/** `causeway tokens check`: the pinned registry against the contracts and the running sidecar. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { type Height, ZERO_HASH } from "../../../chain/hex.js";
import type { TokenEntry } from "../../../chain/token-list.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { loadConfig } from "../../../runtime/config/config.js";
import { sidecarConfig } from "../../../sidecar/config.js";
import { type CommandContext, toJson } from "../../command-context.js";
import { loadKitConfig } from "../../home/kit-config.js";
import { type ContractFacts, readContracts } from "../../probe/token-contract.js";
import { readTokenStandings, type TokenStanding } from "../../probe/token-status.js";
import { NO_TOKEN, readTokens, toWire } from "./list.js";

/** How a token stands; "fail" makes the command exit 1. */
type Verdict = "ok" | "warn" | "fail";

interface TokenFinding {
  readonly token: TokenEntry;
  readonly verdict: Verdict;
  /** Sentences about what is not as pinned; none when all is well. */
  readonly remarks: readonly string[];
  readonly contract: ContractFacts;
  readonly sidecar: TokenStanding;
}

/**
 * Checks every token: code is there, the contract's own symbol and decimals are the pinned ones,
 * and the sidecar follows it without a quarantine.
 * @returns 0, or 1 when a token fails; a warning is no failure
 * @throws NodeFault when the node cannot be asked
 */
export async function runCheckTokens(context: CommandContext): Promise<number> {
  const tokens = await readTokens(context.home);
  const contracts = tokens.map(({ contractAddress }) => contractAddress);
  const { endpoints } = loadKitConfig(context);
  const { network } = loadConfig(context, sidecarConfig)[""];
  const sidecar = { url: endpoints.sidecarOnlineUrl, network };
  const node = await askNode(endpoints.jsonRpcUrl, contracts, context.signal);
  const { facts, head, unseen } = node;
  const standings = await readTokenStandings(sidecar, contracts, context.signal);
  const findings = tokens.map((token, index) =>
    judge(token, {
      contract: facts[index] ?? NO_CONTRACT,
      isUnseen: unseen.has(token.contractAddress),
      sidecar: standings[index] ?? { state: "unknown" },
      head,
    }),
  );
  const failed = findings.some(({ verdict }) => verdict === "fail");
  if (context.json) context.print(toJson({ ok: !failed, tokens: findings.map(findingToWire) }));
  else printFindings(context, findings);
  return failed ? 1 : 0;
}

const NO_CONTRACT: ContractFacts = {
  hasCode: false,
  isDelegating: false,
  symbol: undefined,
  decimals: undefined,
  totalSupplyUnits: undefined,
};

/** What the node says. */
interface NodeFacts {
  readonly facts: readonly ContractFacts[];
  readonly head: Height;
  /** Contracts that run another one's code, which stands in no slot that is looked at. */
  readonly unseen: ReadonlySet<Address>;
}

async function askNode(
  url: string,
  contracts: readonly Address[],
  signal: AbortSignal,
): Promise<NodeFacts> {
  if (contracts.length === 0) return { facts: [], head: 0, unseen: new Set() };
  const rpc = createJsonRpcClient({ url });
  try {
    const client = createEvmClient(rpc);
    const head = await client.blockNumber({ signal });
    const facts = await readContracts(rpc, contracts, { signal });
    const delegating = contracts.filter((_, index) => facts[index]?.isDelegating === true);
    const places = delegating.map((contract) => ({ contract, at: "latest" as const }));
    const codes = await client.tokenCodes(places, { signal });
    const isUnseen = (_: Address, index: number) => codes[index]?.implementation === ZERO_HASH;
    return { facts, head, unseen: new Set(delegating.filter(isUnseen)) };
  } finally {
    rpc.close();
  }
}

/** Blocks that a sidecar which keeps up may not have read yet. */
const MAX_LAG_BLOCKS = 16;

/** Names are the operator's choice, so another symbol is a warning; decimals decide amounts. */
function judge(
  token: TokenEntry,
  {
    contract,
    isUnseen,
    sidecar,
    head,
  }: {
    readonly contract: ContractFacts;
    readonly isUnseen: boolean;
    readonly sidecar: TokenStanding;
    readonly head: Height;
  },
): TokenFinding {
  const fails: string[] = [];
  const warns: string[] = [];
  if (!contract.hasCode) {
    warns.push("no contract is at this address yet");
  } else {
    const { symbol, decimals, totalSupplyUnits } = contract;
    if (symbol !== token.symbol) warns.push(`the contract calls itself ${show(symbol)}`);
    if (decimals === undefined) warns.push("the contract does not tell its decimals");
    else if (decimals !== token.decimals) fails.push(`the contract has ${decimals} decimals`);
    if (isUnseen) {
      warns.push(
        "its code runs another contract's, which stands in no slot that is known: nobody sees that change",
      );
    }
    if (totalSupplyUnits === undefined) fails.push("totalSupply() does not answer: no ERC-20");
  }
  if (sidecar.state === "quarantined") {
    const { fromHeight, reason } = sidecar;
    fails.push(`quarantined by the sidecar from block ${fromHeight} on: ${show(reason)}`);
  }
  const judgedTo = sidecar.state === "followed" ? (sidecar.judgedTo ?? head) : head;
  if (head - judgedTo > MAX_LAG_BLOCKS) {
    warns.push(`the sidecar has read up to block ${judgedTo} of ${head}, and judged no further`);
  }
  if (sidecar.state === "not loaded") warns.push("restart the kit: the sidecar has an older list");
  if (sidecar.state === "unknown") warns.push("the sidecar does not tell whether it follows it");
  const verdict = fails.length > 0 ? "fail" : warns.length > 0 ? "warn" : "ok";
  return { token, verdict, remarks: [...fails, ...warns], contract, sidecar };
}

function printFindings({ print }: CommandContext, findings: readonly TokenFinding[]): void {
  for (const { token, verdict, remarks } of findings) {
    const { contractAddress, symbol, decimals } = token;
    const name = `${toChecksumAddress(contractAddress)}  ${symbol}  ${decimals} decimals`;
    print(`  ${verdict.toUpperCase().padEnd(5)} ${name}`);
    for (const remark of remarks) print(`        -> ${remark}`);
  }
  if (findings.length === 0) print(NO_TOKEN);
}

function findingToWire({ token, verdict, remarks, contract, sidecar }: TokenFinding): object {
  const { hasCode, symbol = null, decimals = null, totalSupplyUnits } = contract;
  const totalSupply = totalSupplyUnits?.toString() ?? null;
  return {
    ...toWire(token),
    verdict,
    remarks,
    contract: { hasCode, symbol, decimals, totalSupply },
    sidecar,
  };
}

/** Text of a stranger, for a terminal: everything but plain ASCII is escaped. */
function show(text: string | undefined): string {
  if (text === undefined) return "nothing";
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
