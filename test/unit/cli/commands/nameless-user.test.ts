/** Containers give their processes users that no file names: what persons decide there is decided all the same. */
import { userInfo } from "node:os";
import { expect } from "@jest/globals";
import { operatorName } from "../../../../cli/commands/ledger-decisions.js";
import { runAcceptCode } from "../../../../cli/commands/tokens/state.js";
import { itForRoot } from "../../../helpers/processes/for-root.js";

const NOBODYS_UID = 1_234_567;

/** Whoever the user is, there is no such folder. */
const home = "/no-home-of-causeway";

const forRoot = itForRoot();

forRoot("a user without a name is recorded as an operator", async () => {
  const { signal } = new AbortController();
  const command = { home, portOffset: 0, json: false, env: {}, signal, print: () => undefined };
  process.seteuid?.(NOBODYS_UID);
  try {
    expect(() => userInfo()).toThrow("uv_os_get_passwd");
    expect(operatorName(undefined)).toBe("operator");
    // It goes on to what it needs: here there is no home.
    await expect(runAcceptCode(command, "GOLD", {})).rejects.toMatchObject({
      code: "HOME_INCOMPLETE",
    });
  } finally {
    process.seteuid?.(0);
  }
});
