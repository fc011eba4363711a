/** A store that cannot be read is no fault of the transaction that wanted to read it. */
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../../chain/address.js";
import type { ProtoMessage } from "../../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../../chain/cosmos/message-schemas.js";
import { present } from "../../../../chain/errors.js";
import type { Hash32 } from "../../../../chain/hex.js";
import { BlockExecution } from "../../../../node/blocks/block-executor.js";
import { MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import { openDatabase, StoreError, storeKey } from "../../../../node/store/database.js";
import type { Address } from "../../../../chain/address.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../../helpers/cosmos/module-state.js";
import { ALICE, CONTRACT, execute, MemoryState, TEN, transaction } from "../call-fixture.js";

/** PUSH0 SLOAD. */
const READS_A_SLOT = "5f54";

/** A state whose slots cannot be read. */
class Unreadable extends MemoryState {
  constructor(private readonly cause: Error) {
    super({ [ALICE]: { balanceAtoken: TEN }, [CONTRACT]: { code: READS_A_SLOT } });
  }

  override storage(_address: Address, _key: Hash32): Uint8Array {
    throw this.cause;
  }
}

/** What the store of a node says of a file that the system does not let it open. */
async function refusedFile(): Promise<Error> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-refused-"));
  const key = storeKey("tip");
  try {
    const database = await openDatabase(folder);
    await database.write([{ key, value: key }], { durable: true });
    await database.close();
    // What was written last is a table once the store was opened again.
    await (await openDatabase(folder)).close();
    const table = join(folder, readdirSync(folder).find((name) => name.endsWith(".ldb")) ?? "");
    rmSync(table);
    symlinkSync(table, table);
    const refused = await openDatabase(folder);
    try {
      refused.get(key);
    } catch (cause) {
      if (cause instanceof Error) return cause;
    } finally {
      await refused.close();
    }
    throw new Error("the table was read");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const faults: readonly (readonly [string, Error])[] = [
  ["damage", new StoreError("STORE_CORRUPT", "a record is damaged")],
  ["a file that cannot be opened", await refusedFile()],
];

describe("execution over a store that cannot be read", () => {
  it.each(faults)("passes on %s, and says nothing of the transaction", async (_name, cause) => {
    const calls = execute(new Unreadable(cause), [transaction({ gasLimit: 100_000n })]);
    await expect(calls).rejects.toBe(cause);
  });
});

const wallet = new Wallet(`0x${"5a".repeat(32)}`);
const SIGNER = parseAddress(wallet.address);
const plainFields = {
  fee: [],
  memo: "",
  feePayer: "",
  feeGranter: "",
  extensionOptions: [],
  signMode: 1,
  signers: [SIGNER],
  signature: new Uint8Array(64),
  publicKeyTypeUrl: "/cosmos.evm.crypto.v1.ethsecp256k1.PubKey",
  publicKey: Buffer.from(wallet.signingKey.compressedPublicKey.slice(2), "hex"),
};

/** A block over the state of a staked chain in which the stake of validators cannot be read. */
function blockOver(cause: Error) {
  const chain = new ModuleChain(stakedGenesis([100, 50]));
  chain.mint(SIGNER, 10n ** 18n);
  const { params } = chain.genesis;
  const execution = new BlockExecution(
    {
      chainId: 6940n,
      params,
      state: {
        account: (address) => chain.state.accountNow(address),
        code: (hash) => chain.state.codeNow(hash),
        storage: (address, slot) => {
          if (address === MODULE_ACCOUNTS.staking) throw cause;
          return chain.state.storageNow(address, slot);
        },
      },
      tries: { node: () => undefined } as never,
      blockHash: () => `0x${"00".repeat(32)}` as Hash32,
      monotonicMs: () => 0,
    },
    {
      parent: { height: 1, hash: `0x${"00".repeat(32)}` as Hash32, timeMs: chain.timeMs },
      parentSupply: { totalAtoken: 1n, burnedAtoken: 0n } as never,
      timeMs: chain.timeMs + 2_000,
      coinbase: SIGNER,
    },
  );
  const add = (name: string, message: ProtoMessage) => {
    const typeUrl = `/cosmos.${name}`;
    const tx = {
      raw: new Uint8Array(300),
      messages: [{ typeUrl, schema: present(schemaOf(typeUrl), name), message }],
      gasLimit: 400_000n,
      feeAtoken: 0n,
      nonce: 0n,
      timeoutHeight: 0n,
      ...plainFields,
    } as never;
    return execution.addCosmos({ tx, from: SIGNER }, params.maxComputeNs);
  };
  return add;
}

describe("a Cosmos transaction whose messages throw", () => {
  const coin = { denom: "atoken", amount: "1" };
  const delegation = {
    delegator_address: toBech32(SIGNER),
    validator_address: toBech32(accountAt(0), VALIDATOR_PREFIX),
    amount: coin,
  };

  it("stays out of blocks, and leaves nothing: no block is given up for it", async () => {
    const cause = new RangeError("nobody has thought of this");
    const add = blockOver(cause);
    const outcome = await add("staking.v1beta1.MsgDelegate", delegation);
    expect(outcome).toMatchObject({ included: false, code: "EXECUTION_FAULT", cause });
    // The sequence is the same as before.
    const send = {
      from_address: toBech32(SIGNER),
      to_address: toBech32(accountAt(5)),
      amount: [coin],
    };
    expect(await add("bank.v1beta1.MsgSend", send)).toMatchObject({ included: true });
  });

  it.each(faults)("says nothing of itself over %s", async (_name, cause) => {
    const adding = blockOver(cause)("staking.v1beta1.MsgDelegate", delegation);
    await expect(adding).rejects.toBe(cause);
  });
});
