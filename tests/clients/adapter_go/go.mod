module adapter

go 1.21

require github.com/redlockd/redlockd/client/go v0.0.0

replace github.com/redlockd/redlockd/client/go => ../../../client/go
