// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// OpenZeppelin's token as it is, with open mint and burn.
contract HonestToken is ERC20 {
    constructor() ERC20("Honest", "HON") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function burn(uint256 amount) external {
        _burn(msg.sender, amount);
    }

    /// Moves coins in a frame that is undone: its log must not count.
    function transferAndUndo(address to, uint256 amount) external {
        try this.moveAndRevert(msg.sender, to, amount) {
            revert("it did not revert");
        } catch {}
    }

    function moveAndRevert(address from, address to, uint256 amount) external {
        _transfer(from, to, amount);
        revert("changed my mind");
    }
}

/// Takes one per cent of each transfer and logs all of it.
contract HonestFeeToken is ERC20 {
    address public constant collector = address(0xFEE);

    constructor() ERC20("Honest fee", "HFEE") {
        _mint(msg.sender, 1e24);
    }

    function _update(address from, address to, uint256 amount) internal override {
        if (from == address(0) || to == address(0)) return super._update(from, to, amount);
        uint256 fee = amount / 100;
        super._update(from, collector, fee);
        super._update(from, to, amount - fee);
    }
}

/// Deposit and Withdrawal instead of Transfer from and to zero, as WETH9 has it.
contract WrappedToken {
    string public constant symbol = "WTOK";
    uint8 public constant decimals = 18;

    event Transfer(address indexed src, address indexed dst, uint256 wad);
    event Deposit(address indexed dst, uint256 wad);
    event Withdrawal(address indexed src, uint256 wad);

    mapping(address => uint256) public balanceOf;

    function totalSupply() external view returns (uint256) {
        return address(this).balance;
    }

    receive() external payable {
        deposit();
    }

    function deposit() public payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposit(msg.sender, msg.value);
    }

    function withdraw(uint256 wad) external {
        balanceOf[msg.sender] -= wad;
        emit Withdrawal(msg.sender, wad);
        (bool ok,) = msg.sender.call{value: wad}("");
        require(ok);
    }

    function transfer(address dst, uint256 wad) external returns (bool) {
        balanceOf[msg.sender] -= wad;
        balanceOf[dst] += wad;
        emit Transfer(msg.sender, dst, wad);
        return true;
    }
}

/// What the tokens below have in common: balances that their logs do not explain.
abstract contract Unlogged {
    uint8 public constant decimals = 18;

    event Transfer(address indexed from, address indexed to, uint256 value);

    mapping(address => uint256) internal held;
    uint256 public totalSupply;

    function balanceOf(address who) public view virtual returns (uint256) {
        return held[who];
    }

    function take(address from, address to, uint256 amount) internal {
        held[from] -= amount;
        held[to] += amount;
    }
}

/// Logs the whole amount, hands over one per cent less.
contract FeeOnTransferToken is Unlogged {
    constructor() {
        held[msg.sender] = 1e24;
        totalSupply = 1e24;
        emit Transfer(address(0), msg.sender, 1e24);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        take(msg.sender, to, amount - amount / 100);
        take(msg.sender, address(0xFEE), amount / 100);
        emit Transfer(msg.sender, to, amount);
        return true;
    }
}

/// Balances grow without any log.
contract RebasingToken is Unlogged {
    uint256 public index = 1;

    constructor() {
        held[msg.sender] = 1e24;
        totalSupply = 1e24;
        emit Transfer(address(0), msg.sender, 1e24);
    }

    function balanceOf(address who) public view override returns (uint256) {
        return held[who] * index;
    }

    function rebase() external {
        index *= 2;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        take(msg.sender, to, amount / index);
        emit Transfer(msg.sender, to, (amount / index) * index);
        return true;
    }
}

/// Logs transfers that never happened.
contract LyingToken is Unlogged {
    constructor() {
        held[msg.sender] = 1e24;
        totalSupply = 1e24;
        emit Transfer(address(0), msg.sender, 1e24);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        emit Transfer(msg.sender, to, amount);
        return true;
    }
}

/// Its constructor mints and says nothing.
contract SilentToken is Unlogged {
    constructor() {
        held[msg.sender] = 1e24;
        totalSupply = 1e24;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        take(msg.sender, to, amount);
        emit Transfer(msg.sender, to, amount);
        return true;
    }
}
