#include "textflag.h"

// func unshare386(flags uint32) int32
TEXT ·unshare386(SB), NOSPLIT, $0-12
	MOVL $310, AX // unshare, by the numbers of i386
	MOVL flags+0(FP), BX
	INT  $0x80
	MOVL AX, ret+8(FP)
	RET
