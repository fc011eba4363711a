/** Opcodes that name an account or a slot, for who watches what a message touches. */

/** The slot is on top of the stack: SLOAD, SSTORE. */
export const SLOT_OPCODES: ReadonlySet<number> = new Set([0x54, 0x55]);

/** The account is on top: BALANCE, EXTCODESIZE, EXTCODECOPY, EXTCODEHASH, SELFDESTRUCT. */
export const ACCOUNT_OPCODES: ReadonlySet<number> = new Set([0x31, 0x3b, 0x3c, 0x3f, 0xff]);

/** The account is the second item: CALL, CALLCODE, DELEGATECALL, STATICCALL. */
export const CALL_OPCODES: ReadonlySet<number> = new Set([0xf1, 0xf2, 0xf4, 0xfa]);

/** Items that go-ethereum wants to see before it looks at a call's account. */
export const CALL_ITEMS = 5;
