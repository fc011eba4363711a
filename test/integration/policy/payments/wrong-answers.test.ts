/** A signer that answers something else than it was asked to sign. */
import { describe, expect, it } from "@jest/globals";
import { releaseSigning } from "../../../../ledger/requests/signing-freeze.js";
import { createWeb3Signer } from "../../../../withdrawal-worker/signers/web3signer.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { bytesToHex } from "../../../../chain/hex.js";
import { laneRules } from "../../../helpers/keys/signing.js";
import { Web3SignerStub } from "../../../helpers/keys/web3signer-stub.js";
import { House, houseForEachTest, WALLET, WALLET_KEY } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

describe("a signer that answers wrongly", () => {
  it("is not asked again until a person has looked; then its nonce is used", async () => {
    const stub = await Web3SignerStub.start(bytesToHex(WALLET_KEY), FAKE_CHAIN_ID);
    const holder = createWeb3Signer({ url: stub.url, timeoutMs: 60_000, address: WALLET });
    try {
      const limits = { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 1_000_000n };
      const rules = laneRules({
        privateKey: WALLET_KEY,
        chainId: FAKE_CHAIN_ID,
        limits,
        sql: house.database,
        files: house.files,
        holder,
      });
      const lane = house.laneWith(rules);
      const { id } = await house.accept();
      stub.lie = "other-value";
      await house.pass(lane);
      expect(await house.isFrozen()).toBe(true);
      expect(lane.status().blockedReason).toContain("the signer answered wrongly");
      expect(await house.read(id)).toMatchObject({ status: "slotted", nonce: 0n, hashes: [] });
      const asked = stub.methods.length;
      await house.pass(lane);
      expect(stub.methods).toHaveLength(asked);
      stub.lie = undefined;
      await releaseSigning(house.database, WALLET);
      await house.pass(lane);
      expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
    } finally {
      await holder.close();
      await stub.stop();
    }
  });
});
