/**
 * A peer: one validator of evmd, cosmos/evm's own chain, with 2 s blocks. A Go program that no package
 * brings: whoever wants the row builds it from its repository (`make install`) and has it on the PATH,
 * or names it in EVMD.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Address, toBech32 } from "../../../chain/address.js";
import { freePort } from "../../helpers/ports.js";
import type { ChainTarget } from "./chain-target.js";
import { startProcess } from "../processes.js";

/** Cosmos chain id of the peer. */
export const EVMD_CHAIN_ID = "evmdbench_9041-1";

/** Its chain id in transactions of the EVM; evmd asks for one. */
const EVM_CHAIN_ID = 9_041;

/** Prefix of its addresses. */
export const EVMD_PREFIX = "cosmos";

/** Its smallest unit. */
export const EVMD_DENOM = "atest";

/** Coins of each funded account. */
const FUNDED = 10n ** 24n;

/** Far above what a block of 2 s can execute: the gas limit shall not be what stops it. */
const BLOCK_GAS = "30000000000";

/** Transactions that wait: a whole burst. */
const MEMPOOL_SIZE = 200_000;

/** Between a commit and the next proposal; making the block takes the rest of the 2 s. */
const TIMEOUT_COMMIT = "1850ms";

/** A chain with the accounts that its genesis has, by number. */
export interface EvmdTarget extends ChainTarget {
  readonly accountNumbers: ReadonlyMap<Address, bigint>;
}

/** The program; undefined where there is none. */
export function evmdProgram(): string | undefined {
  const program = process.env["EVMD"] ?? "evmd";
  return spawnSync(program, ["version"]).status === 0 ? program : undefined;
}

/** Starts a chain of one validator. Throws Error with evmd's words. */
export async function startEvmdTarget(
  program: string,
  funded: readonly Address[],
): Promise<EvmdTarget> {
  const home = mkdtempSync(path.join(tmpdir(), "causeway-bench-evmd-"));
  const remove = () => {
    rmSync(home, { recursive: true, force: true });
  };
  process.once("exit", remove);
  try {
    const accountNumbers = makeHome(program, home, funded);
    const [rpc, p2p] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${rpc}`;
    const evmd = await startProcess({
      name: "evmd",
      command: program,
      args: [
        "start",
        `--home=${home}`,
        `--chain-id=${EVMD_CHAIN_ID}`,
        "--log_level=error",
        "--pruning=nothing",
        `--minimum-gas-prices=0${EVMD_DENOM}`,
        "--evm.min-tip=0",
        `--evm.evm-chain-id=${EVM_CHAIN_ID}`,
        `--rpc.laddr=tcp://127.0.0.1:${rpc}`,
        `--p2p.laddr=tcp://127.0.0.1:${p2p}`,
        "--json-rpc.enable=false",
        "--grpc.enable=false",
        "--api.enable=false",
      ],
      isReady: async () => {
        const { result } = (await (await fetch(`${url}/status`)).json()) as {
          result: { sync_info: { latest_block_height: string } };
        };
        return Number(result.sync_info.latest_block_height) > 0;
      },
    });
    const stop = async () => {
      await evmd.stop();
      remove();
    };
    return { name: "evmd", url, process: evmd, limits: undefined, accountNumbers, stop };
  } catch (error) {
    remove();
    throw error;
  }
}

/** What of its genesis is changed. */
interface EvmdGenesis {
  consensus: { params: { block: { max_gas: string } } };
  app_state: {
    auth: { accounts: Record<string, unknown>[] };
    bank: {
      balances: { address: string; coins: { denom: string; amount: string }[] }[];
      supply: { denom: string; amount: string }[];
      denom_metadata: unknown[];
    };
    staking: { params: { bond_denom: string } };
    mint: { params: { mint_denom: string } };
    evm: { params: { evm_denom: string } };
    feemarket: { params: { no_base_fee: boolean; min_gas_price: string } };
  };
}

/** A home whose validator signs alone; numbers of the funded accounts. */
function makeHome(
  program: string,
  home: string,
  funded: readonly Address[],
): ReadonlyMap<Address, bigint> {
  const keyring = ["--keyring-backend", "test", "--home", home];
  run(program, ["init", "bench", "--chain-id", EVMD_CHAIN_ID, "--home", home]);
  run(program, ["keys", "add", "validator", "--algo", "eth_secp256k1", ...keyring]);
  const file = path.join(home, "config", "genesis.json");
  const edit = (change: (genesis: EvmdGenesis) => void) => {
    const genesis = JSON.parse(readFileSync(file, "utf8")) as EvmdGenesis;
    change(genesis);
    writeFileSync(file, JSON.stringify(genesis));
  };
  edit(({ consensus, app_state: { staking, mint, evm, feemarket, bank } }) => {
    consensus.params.block.max_gas = BLOCK_GAS;
    staking.params.bond_denom = EVMD_DENOM;
    mint.params.mint_denom = EVMD_DENOM;
    evm.params.evm_denom = EVMD_DENOM;
    feemarket.params.no_base_fee = true;
    feemarket.params.min_gas_price = "0.000000000000000000";
    bank.denom_metadata = [
      {
        description: "coin of the benchmark",
        denom_units: [
          { denom: EVMD_DENOM, exponent: 0, aliases: [] },
          { denom: "test", exponent: 18, aliases: [] },
        ],
        base: EVMD_DENOM,
        display: "test",
        name: "Test",
        symbol: "TEST",
      },
    ];
  });
  run(program, [
    "genesis",
    "add-genesis-account",
    "validator",
    `${FUNDED}${EVMD_DENOM}`,
    ...keyring,
  ]);
  const stake = `${FUNDED / 1_000n}${EVMD_DENOM}`;
  run(program, ["genesis", "gentx", "validator", stake, "--chain-id", EVMD_CHAIN_ID, ...keyring]);
  run(program, ["genesis", "collect-gentxs", "--home", home]);
  const numbers = new Map<Address, bigint>();
  edit(({ app_state: { auth, bank } }) => {
    const first = auth.accounts.length;
    for (const [index, owner] of funded.entries()) {
      const address = toBech32(owner, EVMD_PREFIX);
      numbers.set(owner, BigInt(first + index));
      auth.accounts.push({
        "@type": "/cosmos.auth.v1beta1.BaseAccount",
        address,
        pub_key: null,
        account_number: String(first + index),
        sequence: "0",
      });
      bank.balances.push({ address, coins: [{ denom: EVMD_DENOM, amount: String(FUNDED) }] });
    }
    for (const coin of bank.supply) {
      if (coin.denom === EVMD_DENOM) {
        coin.amount = String(BigInt(coin.amount) + FUNDED * BigInt(funded.length));
      }
    }
  });
  const config = path.join(home, "config", "config.toml");
  const text = readFileSync(config, "utf8")
    .replace(/^timeout_commit = .*$/m, `timeout_commit = "${TIMEOUT_COMMIT}"`)
    .replace(/^size = .*$/m, `size = ${MEMPOOL_SIZE}`)
    // Its own pool, without which it does not start.
    .replace('type = "flood"', 'type = "app"');
  writeFileSync(config, text);
  return numbers;
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`evmd ${args.slice(0, 2).join(" ")} failed: ${stderr}`);
}
