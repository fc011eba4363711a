/**
 * Blocks of every kind of balance change, held against @ethereumjs/vm running the same
 * transactions on its own Merkle state: same receipts, same state root.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createBlock } from "@ethereumjs/block";
import { MerkleStateManager } from "@ethereumjs/statemanager";
import { createTxFromRLP } from "@ethereumjs/tx";
import { Account, createAddressFromString, hexToBytes } from "@ethereumjs/util";
import { createVM, runTx, type VM } from "@ethereumjs/vm";
import { ContractFactory, Interface, Wallet } from "ethers";
import { allChanges } from "../../../../chain/balance-change.js";
import { bytesToHex } from "../../../../chain/hex.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";

const wallet = new Wallet(`0x${"11".repeat(32)}`);
const compiled = compileFixture("Payments.sol").Payer;
if (compiled === undefined) throw new Error("fixture did not compile");
const payer = new Interface(JSON.stringify(compiled.abi));
const PRICE = 25_000_000n;
const TEN = 10n ** 19n;

const fresh = (n: number) => `0x${n.toString(16).padStart(40, "9")}`;

/** The oracle: the same genesis and transactions on @ethereumjs/vm with its own tries. */
class Oracle {
  private constructor(
    readonly vm: VM,
    readonly state: MerkleStateManager,
  ) {}

  static async create(chain: ExecutionChain): Promise<Oracle> {
    const { genesis } = chain;
    const common = createCustomCommon({ chainId: Number(genesis.evmChainId) }, Mainnet, {
      hardfork: Hardfork.Cancun,
    });
    const state = new MerkleStateManager({ common });
    for (const [address, account] of genesis.alloc) {
      const key = createAddressFromString(address);
      await state.putAccount(key, new Account(0n, account.balanceAtoken));
      if (account.code !== undefined) await state.putCode(key, hexToBytes(account.code));
      for (const [slot, value] of account.storage) {
        const bytes = hexToBytes(`0x${value.toString(16).padStart(64, "0")}`);
        await state.putStorage(key, hexToBytes(slot), bytes);
      }
    }
    const vm = await createVM({
      common,
      stateManager: state,
      blockchain: {
        getBlock: async (id: unknown) => ({
          hash: () => hexToBytes(chain.stores.blocks.hashOf(Number(id))),
        }),
      } as never,
    });
    return new Oracle(vm, state);
  }

  /** Runs one block; the miner is the FeeCollector, as our fees go there. */
  async run(chain: ExecutionChain, raws: readonly string[], height: number, timeMs: number) {
    const parent = chain.stores.blocks.hashOf(height - 1);
    const block = createBlock(
      {
        header: {
          number: BigInt(height),
          coinbase: createAddressFromString(chain.coinbase),
          timestamp: BigInt(Math.floor(timeMs / 1000)),
          gasLimit: chain.genesis.params.maxGas,
          mixHash: hexToBytes(parent),
          baseFeePerGas: 0n,
        },
      },
      { common: this.vm.common, skipConsensusFormatValidation: true },
    );
    const results = [];
    for (const raw of raws) {
      const tx = createTxFromRLP(hexToBytes(raw as `0x${string}`), { common: this.vm.common });
      results.push(await runTx(this.vm, { tx, block, skipBlockGasLimitValidation: true }));
    }
    return results;
  }

  async move(address: string, deltaAtoken: bigint): Promise<void> {
    const key = createAddressFromString(address);
    const account = (await this.state.getAccount(key)) ?? new Account();
    account.balance += deltaAtoken;
    if (account.isEmpty()) await this.state.deleteAccount(key);
    else await this.state.putAccount(key, account);
  }
}

describe("block execution", () => {
  let chain: ExecutionChain;
  let oracle: Oracle;
  let nonce = 0;
  let contract = "";

  beforeAll(async () => {
    const genesis = testGenesis(wallet.address);
    chain = await ExecutionChain.open(genesis, { coinbase: genesis.params.feeCollector });
    oracle = await Oracle.create(chain);
  });
  afterAll(() => chain.close());

  async function sign(fields: { to?: string; value?: bigint; data?: string; gas?: bigint }) {
    return wallet.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: nonce++,
      gasPrice: PRICE,
      gasLimit: fields.gas ?? 1_000_000n,
      to: fields.to ?? null,
      value: fields.value ?? 0n,
      data: fields.data ?? "0x",
    });
  }

  const call = (name: string, args: unknown[], value = 0n, gas?: bigint) =>
    sign({ to: contract, data: payer.encodeFunctionData(name, args), value, gas });

  /** Mines the block here and on the oracle and compares everything. */
  async function mineOnBoth(raws: readonly string[]) {
    const mined = await chain.mine(raws);
    const { block, receipts, journal } = mined.committed;
    const results = await oracle.run(chain, raws, block.header.height, block.timeMs);
    for (const [index, result] of results.entries()) {
      const receipt = receipts[index];
      expect([index, receipt?.gasUsed]).toEqual([index, result.totalGasSpent]);
      expect([index, receipt?.status]).toEqual([
        index,
        result.execResult.exceptionError === undefined ? 1 : 0,
      ]);
      expect(bytesToHex(receipt?.logsBloom ?? new Uint8Array())).toBe(
        bytesToHex(result.bloom.bitvector),
      );
    }
    for (const { from, to, amountAtoken } of journal.blockChanges) {
      if (from !== undefined) await oracle.move(from, -amountAtoken);
      if (to !== undefined) await oracle.move(to, amountAtoken);
    }
    expect(block.header.stateRoot).toBe(bytesToHex(await oracle.state.getStateRoot()));
    return mined;
  }

  const reasons = (changes: Iterable<{ reason: string; effective: boolean }>) =>
    [...changes].map(({ reason, effective }) => `${reason}${effective ? "" : " failed"}`);

  it("agrees on plain transfers, to itself and of nothing included", async () => {
    const raws = [
      await sign({ to: fresh(1), value: TEN, gas: 21_000n }),
      await sign({ to: wallet.address, value: 5n, gas: 21_000n }),
      await sign({ to: fresh(2), value: 0n, gas: 21_000n }),
      await sign({ to: fresh(1), value: 7n, data: "0x00112200ff", gas: 60_000n }),
      await sign({ to: "0x0000000000000000000000000000000000000004", value: 3n, data: "0x1234" }),
    ];
    const { committed, supply } = await mineOnBoth(raws);
    expect(committed.receipts.map(({ status }) => status)).toEqual([1, 1, 1, 1, 1]);
    const parent = chain.stores.blocks.supply(0)?.totalAtoken ?? 0n;
    const fees = committed.receipts.reduce((sum, { gasUsed }) => sum + gasUsed * PRICE, 0n);
    const minted = (parent * 12n) / (100n * 15_768_000n);
    expect(supply.totalAtoken).toBe(parent + minted - (fees + 1n) / 2n);
  });

  it("agrees on creation with value and payouts from the constructor", async () => {
    const factory = new ContractFactory(payer, compiled.bytecode);
    const { data } = await factory.getDeployTransaction(fresh(3));
    const { committed } = await mineOnBoth([await sign({ data, value: TEN, gas: 3_000_000n })]);
    contract = committed.receipts[0]?.contractAddress ?? "";
    const changes = committed.journal.transactions[0]?.changes ?? [];
    expect(reasons(changes)).toEqual(["FEE", "CREATE", "CALL"]);
    expect(changes[2]?.tracePath).toBe("0");
    expect(changes[2]?.to).toBe(fresh(3));
  });

  it("agrees on internal transfers of every kind", async () => {
    const heir = fresh(8);
    const salt = `0x${"77".repeat(32)}`;
    const { committed, supply } = await mineOnBoth([
      await call("forward", [[fresh(4), fresh(5), fresh(4)], 10n, 3], 100n),
      await call("payThenRevertInside", [fresh(6), 50n], 60n),
      await call("fail", [fresh(6)], 60n),
      await call("delegate", [contract, fresh(7), 11n], 20n),
      await call("create", [salt, heir], 1_000n),
      await call("createToSelf", [], 333n),
      await call("createPlain", [], 444n),
      await call("callcode", [fresh(9), 12n], 12n),
      await call("burnGas", [], 0n, 100_000n),
      await call("write", [5]),
      await call("erase", [1, 3]),
      await call("see", []),
      // Its own code as itself: a CALLCODE as any other, and no transfer to itself.
      await call("callcode", [contract, 12n], 12n),
    ]);
    const kinds = committed.journal.transactions.map(({ changes }) => reasons(changes));
    expect(kinds[0]).toEqual(["FEE", ...Array.from({ length: 7 }, () => "CALL")]);
    expect(kinds[1]).toEqual(["FEE", "CALL", "CALL failed", "CALL"]);
    expect(kinds[2]).toEqual(["FEE", "CALL failed", "CALL failed"]);
    expect(kinds[3]).toEqual(["FEE", "CALL", "CALL"]);
    expect(kinds[4]).toEqual(["FEE", "CALL", "CREATE2", "SELFDESTRUCT"]);
    expect(kinds[5]).toEqual(["FEE", "CALL", "CREATE", "DESTRUCT"]);
    expect(kinds[6]).toEqual(["FEE", "CALL", "CREATE"]);
    expect(kinds[7]).toEqual(["FEE", "CALL"]);
    expect(kinds[8]).toEqual(["FEE", "CALL failed"]);
    expect(kinds[12]).toEqual(["FEE", "CALL"]);
    const last = committed.journal.transactions[5]?.changes.at(-1);
    expect(last).toMatchObject({ reason: "DESTRUCT", to: undefined, amountAtoken: 333n });
    const { burnedAtoken } = committed.journal;
    const burns = [...allChanges(committed.journal)].filter(({ reason }) => reason === "FEE_BURN");
    expect(burnedAtoken).toBe((burns[0]?.amountAtoken ?? 0n) + 333n);
    expect(supply.totalAtoken).toBeGreaterThan(0n);
  });

  it("agrees on a contract that destroys itself later and keeps existing (EIP-6780)", async () => {
    const { committed } = await mineOnBoth([
      await call("destroyTo", [fresh(10)], 5n),
      await sign({ to: contract, value: 9n }),
      await call("destroyTo", [contract], 1n),
    ]);
    const kinds = committed.journal.transactions.map(({ changes }) => reasons(changes));
    expect(kinds[0]).toEqual(["FEE", "CALL", "SELFDESTRUCT"]);
    expect(kinds[2]).toEqual(["FEE", "CALL"]);
  });

  it("leaves out transactions that are not valid, without a trace", async () => {
    const before = await chain.view.account(
      chain.genesis.params.treasury,
      chain.view.head().height,
    );
    const poor = new Wallet(`0x${"22".repeat(32)}`);
    const raw = await poor.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: 0,
      gasPrice: PRICE,
      gasLimit: 21_000n,
      to: fresh(1),
      value: 1n,
    });
    const { outcomes, committed } = await chain.mine([raw]);
    expect(outcomes).toEqual([
      {
        included: false,
        code: "INSUFFICIENT_FUNDS",
        reason:
          "insufficient funds for gas * price + value: balance 0, tx cost 525000000001, " +
          "overshot 525000000001",
      },
    ]);
    expect(committed.block.transactions).toEqual([]);
    const after = await chain.view.account(chain.genesis.params.treasury, chain.view.head().height);
    expect(after).toEqual(before);
  });

  it("answers balances, nonces and storage at every height", async () => {
    const account = parseFresh(1);
    expect((await chain.view.account(account, 0))?.balanceAtoken).toBeUndefined();
    expect((await chain.view.account(account, 1))?.balanceAtoken).toBe(TEN + 7n);
    const owner = chain.genesis.alloc.keys().next().value;
    if (owner === undefined) throw new Error("no faucet");
    expect((await chain.view.account(owner, 0))?.nonce ?? 0n).toBe(0n);
    expect((await chain.view.account(owner, 1))?.nonce).toBe(5n);
    expect((await chain.view.account(owner, 2))?.nonce).toBe(6n);
  });

  function parseFresh(n: number) {
    return fresh(n) as `0x${string}` & { readonly __brand: "Address" };
  }
});
