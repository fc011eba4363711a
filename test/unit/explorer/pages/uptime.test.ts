/** How reliably validators signed lately: by the commits of the chain that is there now. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { validatorRoutes } from "../../../../explorer/pages/staking/validators.js";
import { ModuleFault } from "../../../../explorer/sources/modules/rest-client.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const [FORMER, PRESENT] = ["f0", "ee"].map((byte) => parseAddress(`0x${byte.repeat(20)}`));

it("asks again for commits of heights that a chain has lost and made anew", async () => {
  let chain = { generation: 0, validator: FORMER };
  const asked: number[] = [];
  const unserved = () => Promise.reject(new ModuleFault("NOT_SERVED", "no such module"));
  const context = {
    generation: () => chain.generation,
    chain: { head: () => Promise.resolve({ height: 6 }) },
    consensus: {
      validators: () =>
        Promise.resolve([{ address: chain.validator, publicKey: "key", power: 1n }]),
      commits: (heights: readonly number[]) => {
        asked.push(heights.length);
        const votes = [{ validator: chain.validator, vote: "commit" }];
        return Promise.resolve(heights.map((height) => ({ height, votes, isCanonical: true })));
      },
    },
    staking: {
      validators: unserved,
      signing: unserved,
      signingWindow: unserved,
      bondedAtoken: unserved,
    },
  } as unknown as PageContext;
  const [route] = validatorRoutes(context);
  const uptime = async () => {
    const page = await openPage(route);
    const { text } = shownContent(page.content);
    return /\d+ \/ \d+ \(/.exec(text)?.[0];
  };
  expect([await uptime(), await uptime()]).toEqual(["5 / 5 (", "5 / 5 ("]);
  // Final commits do not change: they are asked for once.
  expect(asked).toEqual([5, 0]);
  chain = { generation: 1, validator: PRESENT };
  expect(await uptime()).toBe("5 / 5 (");
});
