/** Names of opcodes as go-ethereum writes them in traces. */

const NAMES = new Map<number, string>(
  [
    ["00", "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND"],
    ["10", "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR"],
    ["20", "KECCAK256"],
    ["30", "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY"],
    ["38", "CODESIZE CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY"],
    ["3f", "EXTCODEHASH"],
    // Since the merge it is PREVRANDAO; the name has stayed.
    ["40", "BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE"],
    ["48", "BASEFEE BLOBHASH BLOBBASEFEE"],
    ["50", "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST"],
    ["5c", "TLOAD TSTORE MCOPY PUSH0"],
    ["60", numbered("PUSH", 32)],
    ["80", numbered("DUP", 16)],
    ["90", numbered("SWAP", 16)],
    ["a0", "LOG0 LOG1 LOG2 LOG3 LOG4"],
    ["f0", "CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2"],
    ["fa", "STATICCALL"],
    ["fd", "REVERT INVALID SELFDESTRUCT"],
  ].flatMap(([first = "", names = ""]) =>
    names.split(" ").map((name, index) => [Number.parseInt(first, 16) + index, name] as const),
  ),
);

function numbered(name: string, count: number): string {
  return Array.from({ length: count }, (_, index) => `${name}${index + 1}`).join(" ");
}

/** The name; "opcode 0xc not defined" where there is none. */
export function opcodeName(opcode: number): string {
  return NAMES.get(opcode) ?? `opcode 0x${opcode.toString(16)} not defined`;
}
