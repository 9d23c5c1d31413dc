"""Events from other systems: POST /hooks/<source>/ with a signed JSON body."""
